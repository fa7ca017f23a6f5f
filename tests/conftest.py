"""What several tests share: the recorded sessions, and how hard generated inputs are tried."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SHARED = Path(__file__).resolve().parents[2] / "shared"

# No deadline: how long one example takes says more about the machine's other work than about the code.
_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("ordinary", max_examples=300, print_blob=True, **_CALM)
settings.register_profile("slow", max_examples=10_000, print_blob=True, **_CALM)


def pytest_configure(config: pytest.Config) -> None:
    """`-m slow` tries harder; it is chosen here, before the tests are imported, since @given reads it there."""
    slow = "slow" in config.option.markexpr.replace("not slow", "")
    settings.load_profile(os.environ.get("CUTLINE_HYPOTHESIS") or ("slow" if slow else "ordinary"))


def claude_code_files() -> list[Path]:
    """Every recorded session file of Claude Code; empty where they are not on this machine."""
    return sorted((SHARED / "data" / "sessions" / "claude-code").rglob("*.jsonl"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with recorded sessions (`data`) and reported faults (`bugs`)."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the recorded sessions are not on this machine: there is no ../shared/data")
    return SHARED


@pytest.fixture(scope="session")
def sessions(shared: Path) -> list[Path]:
    """Every recorded session file of Claude Code."""
    return claude_code_files()
