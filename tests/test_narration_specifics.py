"""What a call is about, and what a text holds that can't be guessed: what narration and the trace are made from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutline.narration import specifics, target

# The target


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("Read", {"file_path": "/a/b.py", "offset": 3}, "/a/b.py"),
        ("read", {"filePath": "/a/b.py"}, "/a/b.py"),
        ("Edit", {"old_string": "x", "new_string": "y", "file_path": "/a/b.py"}, "/a/b.py"),
        ("read_file", {"absolute_path": "/a/b.py"}, "/a/b.py"),
        ("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "1"}, "n.ipynb"),
        ("str_replace_editor", {"command": "view", "path": "/a/b.py"}, "/a/b.py"),
        ("Grep", {"pattern": "foo.*", "path": "src", "output_mode": "content"}, "foo.* in src"),
        ("Glob", {"pattern": "**/*.go"}, "**/*.go"),
        ("list_directory", {"dir_path": "src"}, "src"),
        ("Bash", {"command": "go test ./...", "description": "Test"}, "go test ./..."),
        ("Bash", {"command": "cd '/some where/deep' && make  all\n  -j4"}, "make all -j4"),
        ("Bash", {"command": "cd /tmp"}, "cd /tmp"),
        ("exec_command", {"cmd": "ls", "workdir": "/w"}, "ls"),
        ("shell", {"command": ["bash", "-lc", "cargo build"], "workdir": "/w"}, "cargo build"),
        ("apply_patch", b"*** Begin Patch\n*** Update File: a.py\n*** Add File: b.py\n+x\n", "a.py, b.py"),
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Delete File: a.py\n"}, "a.py"),
        ("exec", b'const r = await tools.exec_command({cmd: "wc -l a.py", max: 9});', "wc -l a.py"),
        ("WebFetch", {"prompt": "What is new?", "url": "https://example.org/x"}, "https://example.org/x"),
        ("WebSearch", {"query": "json surrogates"}, "json surrogates"),
        ("Task", {"description": "Find callers", "prompt": "Long …", "subagent_type": "x"}, "Find callers"),
        ("AskUserQuestion", {"questions": [{"question": "Which one?", "options": []}]}, "Which one?"),
        ("TodoWrite", {"todos": [{"content": "Fix it", "status": "open"}]}, "Fix it"),
        ("write_stdin", {"session_id": 7, "chars": "\x03"}, "7"),
        ("mystery", {"model": "m", "zone": "north"}, "north"),
        ("mystery", {"long": "l" * 900, "short": "s"}, "s"),
        ("mystery", {"n": 1, "deep": {"er": ["found"]}}, "found"),
        ("Write", b'{"file_path": "/a/torn.py", "content": "def f', "/a/torn.py"),
        ("mystery", b"plain words", "plain words"),
        ("mystery", b'"a string"', "a string"),
        ("mystery", {}, ""),
        ("mystery", b"", ""),
        ("mystery", b"[1, null, true]", ""),
        ("Read", rb'{"file_path": "bad\ud800name.py"}', "bad\ufffdname.py"),
        ("Read", b'{"file_path": "latin\xe9.py"}', "latin\ufffd.py"),
        ("Bash", {"command": "printf '\x1b[1m'\t\x00x"}, "printf ' [1m' x"),
    ],
)
def test_the_target_is_what_the_call_is_about(name: str, arguments: Any, expected: str):
    raw = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
    assert target(name, raw) == expected


def test_a_long_target_is_cut_to_one_short_line():
    text = target("Bash", json.dumps({"command": "echo " + "word " * 100_000}).encode())
    assert text.startswith("echo word word") and text.endswith("…") and len(text) <= 120


def test_a_number_too_long_to_be_one_is_no_trouble():
    assert target("Read", b'{"n": ' + b"9" * 6_000 + b', "path": "a.py"}') == "a.py"


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_arguments_are_too_odd(raw: bytes):
    text = target("x", raw)
    assert len(text) <= 120 and len(text.splitlines()) <= 1
    text.encode()


@pytest.mark.parametrize("raw", [b"[" * 20_000, b'{"a":' * 20_000, b'{"path": "a.py", "x": ' + b"[" * 20_000])
def test_deep_nesting_is_no_trouble(raw: bytes):
    assert len(target("x", raw)) <= 120


# Specifics


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see ./src/lock-file/pool.py for it", {"./src/lock-file/pool.py", "pool.py"}),
        ("in ~/notes and /etc/hosts", {"~/notes", "/etc/hosts"}),
        ("pool.go:213 holds gc.mu", {"pool.go", "213", "gc.mu"}),
        ("call refreshCache(), then HTTPServer or read_all", {"refreshCache", "HTTPServer", "read_all"}),
        ("23.4M reads of 1,024 rows, 12% in 0.69s", {"23.4M", "1,024", "12%", "0.69s"}),
        ("run it with --all-refs and -n", {"--all-refs", "-n"}),
        ("commit b5e924cd on v1.2.3, 2026-01-02", {"b5e924cd", "v1.2.3", "2026-01-02"}),
        ("ENOENT, then TypeError", {"ENOENT", "TypeError"}),
        ("the `main` branch, `close()` too", {"main", "close"}),
        ("at https://example.org/a?b=1.", {"https://example.org/a?b=1"}),
        ("std::vector and $HOME and .gitignore", {"std::vector", "$HOME", ".gitignore"}),
        ("café_größe in 日本/src/主要.py", {"café_größe", "日本/src/主要.py", "主要.py"}),
    ],
)
def test_specifics_are_found(text: str, found: set[str]):
    assert specifics(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Done. Everything looks good now, and the tests pass.",
        "I can read and/or write it, e.g. in one go; see the 1st or 2nd part (re-run).",
        "ERROR: FAILED. NOTE: README and JSON.",
        "a 1 b - c -- d / e ... ~ `",
    ],
)
def test_plain_words_hold_no_specifics(text: str):
    assert specifics(text) == frozenset()


def test_of_a_huge_text_the_ends_are_read():
    text = "first_name " + "word " * 40_000 + "middle_name " + "word " * 40_000 + "last_name"
    assert specifics(text) == {"first_name", "last_name"}
