"""These tests are slow, and so is loading what they are about: the ordinary run does not even look at them."""

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if "not slow" in config.option.markexpr else None
