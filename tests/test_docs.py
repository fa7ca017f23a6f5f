"""Every shell example of the documentation runs; every link in it leads somewhere."""

import os
import re
import shlex
from pathlib import Path

import pytest

from test_command_line import Shell, body, shell  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
# Set-up lines: what they do is what runs this test.
SET_UP = re.compile(r"pip install uv && uv run (?:pytest|cutline demo)\Z")


def examples() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text("utf-8"), re.S):
            found += [(page.name, line) for line in block.splitlines() if line.strip()]
    return found


def test_there_are_examples():
    assert sum(line.startswith("cutline") for _, line in examples()) >= 8


@pytest.mark.parametrize(("page", "line"), examples())
def test_an_example_runs(page: str, line: str, shell: Shell):  # noqa: F811
    if SET_UP.match(line):
        return
    words = shlex.split(line)
    assert words[0] == "cutline", f"{page}: an example that the tests can't run: {line}"
    shell.session(checkpoint=True)
    (shell.project / "body.json").write_bytes(body())
    if "cut.json" in line and "-o" not in words:
        assert shell("cut", "body.json", "-o", "cut.json").returncode == 0
    done = shell(*words[1:], env=_with_a_client(shell, words[2]) if words[1:2] == ["run"] else None)
    assert done.returncode == 0, f"{page}: {line}: {done.stderr.decode()}"


def _with_a_client(shell: Shell, name: str) -> dict[str, str]:  # noqa: F811
    """A stand-in for the client, which is not installed here; tests/live runs the real one."""
    client = shell.home / "bin" / name
    client.parent.mkdir()
    client.write_text("#!/bin/sh\nexit 0\n")
    client.chmod(0o755)
    return {
        "PATH": f"{client.parent}:{os.environ['PATH']}",
        "TMPDIR": str(shell.home),
        "GEMINI_CLI_HOME": str(shell.home),
        "GEMINI_API_KEY": "dummy",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_command_and_every_option_of_the_cut_is_in_the_documentation():
    from cutline.cli import _COMMANDS

    text = "".join(page.read_text("utf-8") for page in PAGES)
    for name in _COMMANDS:
        assert re.search(rf"`?cutline`?[^\n]*\b{name}\b", text), f"{name} is documented nowhere"
