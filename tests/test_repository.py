"""The repository speaks of the project alone: no machine's paths, no registries, nothing private."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Spelled so that this file does not find itself.
PATHS = re.compile(r"/wo" r"rk/|/ro" r"ot/|/ho" r"me/(?!user|proj)\w|/Us" r"ers/(?!me\b|you\b)\w|/tm" r"p/w/")
HOSTS = re.compile(r"https?://[\w.-]*(?:pyp" r"i|regis" r"try|mir" r"ror|files\.pythonhosted)[\w.-]*", re.I)
KEYS = re.compile(r"sk-a" r"nt-[\w-]{10,}|gh" r"p_\w{20,}|AK" r"IA[0-9A-Z]{16}")


def tracked() -> list[Path]:
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


def test_every_text_file_is_utf8_and_small_enough_to_have_been_written_here():
    for path in tracked():
        data = path.read_bytes()
        data.decode("utf-8")
        assert len(data) < 200_000, f"{path.name} looks like a recording"
