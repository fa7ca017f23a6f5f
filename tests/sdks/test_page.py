"""Every example of the page docs/sdks.md is a program that runs, and its requests go through the transport."""

from __future__ import annotations

import re
import subprocess
import sys
from os import environ
from pathlib import Path

import pytest

from .provider import Provider

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sdks.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.S)
ABOUT = [re.findall(r"^(?:import|from) (\w+)", code, re.M)[-1] for code in EXAMPLES]
ENDS = "\nimport gc, sys\ntold = [one for one in gc.get_objects() if type(one) is cutline.Transport]\n"
ENDS += "print('passed', sum(one.report().requests for one in told), file=sys.stderr)\n"


@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=lambda number: f"{number}-{ABOUT[number]}")
def test_an_example_runs(tmp_path: Path, number: int):
    pytest.importorskip("anthropic", reason="needs the group: uv run --group sdks pytest -m slow tests/sdks")
    with Provider([]) as provider:
        environment = {
            **environ,
            "HOME": str(tmp_path),
            "XDG_DATA_HOME": str(tmp_path),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            **{f"{name}_API_KEY": "none" for name in ("ANTHROPIC", "OPENAI", "GOOGLE")},
            "ANTHROPIC_BASE_URL": provider.url,
            "OPENAI_BASE_URL": f"{provider.url}/v1",
            "GOOGLE_GEMINI_BASE_URL": provider.url,
        }
        done = subprocess.run(
            [sys.executable, "-c", EXAMPLES[number] + ENDS],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert provider.posted and provider.refusals == []
        assert f"passed {len(provider.posted)}" in done.stderr
    assert (tmp_path / "cutline" / "record.db").is_file()
