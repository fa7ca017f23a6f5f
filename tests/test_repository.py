"""The repository speaks of the project alone: no machine's paths, no registries, nothing private."""

import json
import re
import shutil
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Spelled so that this file does not find itself.
PATHS = re.compile(r"/wo" r"rk/|/ro" r"ot/|/Us" r"ers/(?!me\b|you\b)\w|/tm" r"p/w/")
HOSTS = re.compile(r"https?://[\w.-]*(?:pyp" r"i|regis" r"try|mir" r"ror|files\.pythonhosted)[\w.-]*", re.I)
KEYS = re.compile(r"sk-a" r"nt-[\w-]{10,}|gh" r"p_\w{20,}|AK" r"IA[0-9A-Z]{16}")

# So many words in a row, most of them different, are no accident. Fewer are: formulas, imports, field names.
RUN, DIFFERENT = 12, 8
WORD = re.compile(rb"[A-Za-z]{2,}")


def tracked() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: which files are the project's can't be asked")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = [name for name in done.stdout.decode().split("\0") if name and name != "uv.lock"]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def test_no_file_names_a_machine_a_registry_or_a_key():
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        for pattern in (PATHS, HOSTS, KEYS):
            found += [f"{path.relative_to(ROOT)}: {hit[0]}" for hit in pattern.finditer(text)]
    assert not found, found[:10]


def test_every_file_is_utf8_or_a_picture_and_small_enough_to_have_been_written_here():
    for path in tracked():
        data = path.read_bytes()
        if path.suffix == ".png":
            assert data.startswith(b"\x89PNG"), path.name
        else:
            data.decode("utf-8")
        assert len(data) < 200_000, f"{path.name} looks like a recording"


def runs(data: bytes) -> Iterator[tuple[bytes, ...]]:
    """Every run of RUN words, whatever stands between them; JSON's escapes are no letters."""
    words = WORD.findall(re.sub(rb'\\[nrt"]', b" ", data))
    return zip(*(words[first:] for first in range(RUN)), strict=False)


def test_a_sentence_is_found_again_in_a_session_file():
    sentence = "the cache that was warm at noon is cold again because somebody restarted it during lunch"
    line = json.dumps({"text": f'He said:\n"{sentence.replace(" ", chr(10), 3)}"\n'}).encode()
    assert set(runs(sentence.encode())) <= set(runs(line))


@pytest.mark.slow
def test_nothing_of_the_recorded_sessions_was_copied(shared: Path):
    """What stands in the recordings of one project alone is somebody's; what many have, their clients wrote."""
    data = shared / "data"
    sources = {
        entry["file"]: entry["source"].split("@")[0] for entry in json.loads((data / "manifest.json").read_bytes())
    }
    ours = {
        run: path.relative_to(ROOT)
        for path in tracked()
        if path.name != "LICENSE"
        for run in runs(path.read_bytes())
        if len(set(run)) >= DIFFERENT
    }
    owners: defaultdict[tuple[bytes, ...], set[str]] = defaultdict(set)
    for file, source in sources.items():
        for run in ours.keys() & set(runs((data / "sessions" / file).read_bytes())):
            owners[run].add(source)
    copied = [f"{ours[run]}: {b' '.join(run).decode()}" for run, of in owners.items() if len(of) == 1]
    assert not copied, copied[:10]


def test_the_constraints_are_names_and_versions_and_hold_what_the_project_asks_for():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    form = re.compile(r"([a-z0-9-]+)==[\w.]+( ; [\w\s.'<>=!()]+)?")
    assert [line for line in lines if not form.fullmatch(line)] == []
    held = {line.split("==")[0] for line in lines}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    for extra in project["project"].get("optional-dependencies", {}).values():
        wanted += extra
    assert {re.split(r"[^\w-]", one)[0] for one in wanted} <= held, "write constraints.txt anew: just constraints"


@pytest.mark.slow
def test_what_is_installed_needs_nothing_of_the_developers(tmp_path: Path):
    """The wheel alone, with its runtime dependencies alone, answers and is typed."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not on this machine")
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("cutline-*.whl")
    alone = [uv, "run", "--quiet", "--isolated", "--no-project", "--with", str(wheel)]
    shown = subprocess.run([*alone, "cutline", "--help"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "cutline" in shown.stdout
    where = "import cutline, pathlib; print((pathlib.Path(cutline.__file__).parent / 'py.typed').is_file())"
    typed = subprocess.run([*alone, "python", "-c", where], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert typed.stdout.strip() == "True"


def test_every_live_file_is_run_by_one_step():
    """The steps name their files, so that each stays under eight minutes: a new one must not be forgotten."""
    script = (ROOT / ".ci" / "run").read_text()
    words = [word for line in script.splitlines() if line.startswith("live ") for word in _words(line)]
    live = sorted(path.name.removeprefix("test_") for path in (ROOT / "tests" / "live").glob("test_*.py"))
    assert sorted(words) == live


def _words(line: str) -> list[str]:
    """The file names of a step, braces spelled out as the shell does."""
    done = subprocess.run(["bash", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True)
    return [word for word in done.stdout.splitlines() if word.endswith(".py")]
