"""What several tests share: the recorded sessions, and how hard generated inputs are tried."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

SHARED = Path(__file__).resolve().parents[2] / "shared"

# No deadline: how long one example takes says more about the machine's other work than about the code.
_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
# The same examples each time, so that what passed once passes again and a failure is the change's own. Other examples
# are for a search: CUTLINE_SEARCH=1 (`just search`), which found most of what the fixed ones now hold.
_FIXED = {} if os.environ.get("CUTLINE_SEARCH") else {"derandomize": True, "database": None}
settings.register_profile("ordinary", max_examples=300, print_blob=True, **_CALM, **_FIXED)
settings.register_profile("slow", max_examples=10_000, print_blob=True, **_CALM, **_FIXED)


def pytest_configure(config: pytest.Config) -> None:
    """`-m slow` tries harder; it is chosen here, before the tests are imported, since @given reads it there."""
    slow = "slow" in config.option.markexpr.replace("not slow", "")
    settings.load_profile("slow" if slow else "ordinary")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is slow as a whole is not even read in the ordinary run: a quarter of all lines, and heavy libraries."""
    whole = collection_path.parent.name in ("live", "sdks") and collection_path.name.startswith("test_")
    return True if whole and "not slow" in config.option.markexpr else None


# The ordinary run takes recorded files below so many bytes, which hold every kind of record; -m slow takes all.
LARGE = 800_000


def smaller(files: Iterable[Path]) -> list[Path]:
    """Those that the ordinary run takes."""
    return [path for path in files if path.stat().st_size < LARGE]


def large_ones_slow(files: Iterable[Path]) -> list[Any]:
    """All as parameters, those that the ordinary run does not take marked as slow."""
    return [path if path.stat().st_size < LARGE else pytest.param(path, marks=pytest.mark.slow) for path in files]


def tried(name: str, files: Sequence[Path], least: Mapping[str | None, int], *marks: pytest.MarkDecorator) -> list[Any]:
    """Parameters `at, files, least`: a cut at each place tried in all of the files, and how many of them have it."""
    return [pytest.param(at, files, count, marks=marks, id=f"{at}-{name}") for at, count in least.items()]


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
