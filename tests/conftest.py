"""What several tests share: the recorded sessions, and how hard generated inputs are tried."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SHARED = Path(__file__).resolve().parents[2] / "shared"

_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("ordinary", max_examples=300, **_CALM)
settings.register_profile("slow", max_examples=10_000, **_CALM)
settings.load_profile(os.environ.get("CUTLINE_HYPOTHESIS", "ordinary"))


def claude_code_files() -> list[Path]:
    """Every recorded session file of Claude Code; empty where they are not on this machine."""
    return sorted((SHARED / "data" / "sessions" / "claude-code").rglob("*.jsonl"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with recorded sessions and reported faults."""
    if not SHARED.is_dir():
        pytest.skip("../shared is not on this machine")
    return SHARED
