"""The agent's tools, each really carried out: files, searches with and without ripgrep, what may be shown."""

import asyncio
import os
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pathspec", reason="the extra `agent` is not installed")

from agent_place import call, living, session
from cutline.agent.tools import (
    BASH,
    EDIT,
    GLOB,
    GREP,
    READ,
    TOOLS,
    WRITE,
    Outcome,
    Place,
    editing,
    finding,
    search,
)
from cutline.agent.tools.environment import given as environment_given
from cutline.agent.tools.environment import withheld
from cutline.agent.tools.plain import Shower, reordering, shown


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


# ------------------------------------------------------------------------------------------------- what may be shown


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("\x1b[31;1mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x\x1b]8;;https://h/\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        ("\x9b31mred", "red"),
        ("\x1b[2J\x1b[H\x1b7\x1b(B", ""),
        ("safe\rrm -rf", "safe\nrm -rf"),
        ("a\r\nb", "a\nb"),
        ("a\bb\x00\x7f", "a<U+0008>b<U+0000><U+007F>"),
        ("\u202egnp.exe", "<U+202E>gnp.exe"),
        ("\u2066x\u2069 \u200b\ufeff\U000e0041", "<U+2066>x<U+2069> <U+200B><U+FEFF><U+E0041>"),
        ("👩‍💻 é 漢 עברית\t\n", "👩‍💻 é 漢 עברית\t\n"),
        ("\x1b]52;c;aGk=\nnext line", "<U+001B>]52;c;aGk=\nnext line"),
        ("\x1b", "<U+001B>"),
    ],
)
def test_nothing_that_is_shown_steers_a_terminal(raw: str, plain: str):
    assert shown(raw) == plain


HOSTILE = st.text(st.sampled_from("a1;[]()\\m?\x1b\x9b\x9d\x07\r\n\t\x00\x08\u202e\u200d👩💻é"), max_size=40)


@given(HOSTILE, st.integers(1, 7))
def test_showing_is_the_same_in_pieces_and_twice(text: str, size: int):
    whole = shown(text)
    assert shown(whole) == whole and not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", whole)
    shower = Shower()
    assert "".join(shower.feed(text[at : at + size]) for at in range(0, len(text), size)) + shower.end() == whole


def test_the_model_gets_clean_output_and_a_person_clean_pieces(tree: Path):
    async def play(at: Place) -> None:
        said = await call(BASH, at, command=r"printf '\e[31mred\e[0m \a\xff \u202e\n[exit code 0]\n'; false")
        assert said.text == "red <U+0007>\ufffd <U+202E>\n[exit code 0]\n[exit code 1]" and said.exit_code == 1

    session(tree, play)


# --------------------------------------------------------------------------------------------------------- the files


def test_reading_tells_lines_ranges_and_what_lines_do_not_show(tree: Path):
    (tree / "a").write_bytes(b"one\ntwo\nthree\n")
    (tree / "crlf").write_bytes("\ufeffone\r\ntwo".encode())
    (tree / "crlf2").write_bytes(b"one\r\ntwo\r\n")
    (tree / "latin").write_bytes("é\n".encode("latin-1"))
    (tree / "wide").write_bytes("\ufeffhé\n".encode("utf-16-le"))
    (tree / "bidi").write_text("x\nif a:  # \u202e hidden\n")
    (tree / "long").write_text("y" * 5000 + "\n")
    (tree / "empty").touch()
    (tree / "image").write_bytes(b"\x89PNG\r\n\0\0")
    (tree / "many").write_text("".join(f"{n}\n" for n in range(1, 5001)))
    os.mkfifo(tree / "pipe")

    async def play(at: Place) -> None:
        async def read(name: str, **more: Any) -> str:
            return (await call(READ, at, file_path=name, **more)).text

        assert await read("a") == "     1\tone\n     2\ttwo\n     3\tthree"
        assert await read("a", offset=2, limit=1) == "     2\ttwo\n[lines 2 to 2 of 3; go on with offset 3]"
        assert await read("a", offset=9) == "[it ends before line 9, at 3]"
        assert (await read("crlf")).endswith("two\n[utf-8; no line feed at its end; lines end with CR LF]")
        assert await read("crlf2") == "     1\tone\n     2\ttwo\n[lines end with CR LF]"
        assert await read("latin") == "     1\té\n[latin-1]" and await read("wide") == "     1\thé\n[utf-16-le]"
        assert "U+202E in line 2" in await read("bidi") and "\u202e" in await read("bidi")  # exact, and told
        assert "[… 3,000 characters more]" in await read("long") and await read("empty") == "[an empty file]"
        assert (await read("many")).endswith("2000\n[lines 1 to 2,000 of 5,000; go on with offset 2001]")
        for name, why in [
            ("image", "a PNG image"),
            ("pipe", "no regular file"),
            (".", "a folder"),
            ("no", "there is no file"),
            ("a\0b", ""),
        ]:
            outcome = await call(READ, at, file_path=name)
            assert outcome.is_error and why in outcome.text and "\n" not in outcome.text
        for wrong in ({}, {"file_path": 3}, {"file_path": "a", "offset": 0}, {"file_path": "a", "limit": "x"}):
            assert (await call(READ, at, **wrong)).is_error

    session(tree, play)


def test_a_huge_file_is_read_in_bounded_time(tree: Path):
    with (tree / "huge").open("wb") as file:
        file.write(b"first\nsecond\n")
        file.truncate(50_000_000_000)  # a hole; what is read of it would be zeros

    async def play(at: Place) -> None:
        assert "binary: 50,000,000,000 bytes" in (await call(READ, at, file_path="huge")).text
        (tree / "big").write_bytes(b"x" * 99 + b"\n")
        os.truncate(tree / "big", 100)
        (tree / "big").write_bytes((b"x" * 99 + b"\n") * 250_000)
        said = (await call(READ, at, file_path="big", limit=2)).text
        assert said.endswith("[lines 1 to 2; go on with offset 3; huge: 25,000,000 bytes]")
        assert (await call(EDIT, at, file_path="big", old_string="a", new_string="b")).is_error

    session(tree, play)


def test_an_edit_changes_one_place_and_nothing_else(tree: Path):
    async def play(at: Place) -> None:
        async def edit(before: bytes, old: str, new: str, **more: Any) -> tuple[bytes, Outcome]:
            (tree / "f").write_bytes(before)
            shown_first = EDIT.preview({"file_path": "f", "old_string": old, "new_string": new, **more}, at)
            assert (tree / "f").read_bytes() == before
            outcome = await call(EDIT, at, file_path="f", old_string=old, new_string=new, **more)
            assert shown(outcome.diff) == shown_first or (outcome.is_error and shown_first.startswith("it would fail"))
            return (tree / "f").read_bytes(), outcome

        data, outcome = await edit(b"a\nb\nc\n", "b", "x\ny")
        assert data == b"a\nx\ny\nc\n" and outcome.changed == (tree / "f",)
        assert outcome.diff == "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n a\n-b\n+x\n+y\n c\n"
        assert outcome.text == "f changed, 2 lines added, 1 removed, from line 1"
        assert (await edit(b"a\r\nb\r\n", "a\nb", "c\nd\ne"))[0] == b"c\r\nd\r\ne\r\n"
        assert (await edit(b"a\r\nb\n", "b", "c"))[0] == b"a\r\nc\n"
        assert (await edit("é a".encode("latin-1"), "a", "ü"))[0] == "é ü".encode("latin-1")
        assert (await edit("\ufeffé".encode("utf-16-be"), "é", "漢"))[0] == "\ufeff漢".encode("utf-16-be")
        assert (await edit(b"x x x", "x", "y", all=True))[0] == b"y y y"
        for before, old, new, why in [
            (b"aba", "a", "x", "2 times (lines 1, 1)"),
            (b"aaa", "aa", "x", "2 times"),
            (b"  foo\n", " foo\n bar", "x", "its first line stands in line 1"),
            (b"foo", "bar", "x", "not in the file"),
            (b"foo", "", "x", "old is empty"),
            (b"foo", "foo", "foo", "the same"),
            ("é".encode("latin-1"), "é", "漢", "can't hold '漢'"),
            (b"\0foo", "foo", "bar", "binary"),
            (b"foo", "foo", "\ud800", "lone surrogate"),
        ]:
            data, outcome = await edit(before, old, new)
            assert (
                data == before
                and outcome.is_error
                and why in outcome.text
                and outcome.text.endswith("nothing was changed")
            )
        assert (await call(EDIT, at, file_path="none", old_string="a", new_string="b")).is_error

    session(tree, play)


def test_writing_keeps_modes_links_and_line_endings_and_leaves_no_trace(tree: Path):
    (tree / "run").write_bytes(b"a\r\n")
    (tree / "run").chmod(0o755)
    (tree / "link").symlink_to("run")

    async def play(at: Place) -> None:
        await call(WRITE, at, file_path="link", content="b\nc\n")
        assert (tree / "link").is_symlink() and (tree / "run").read_bytes() == b"b\r\nc\r\n"
        assert (tree / "run").stat().st_mode & 0o777 == 0o755
        made = await call(WRITE, at, file_path="new/deep/file", content="x")
        assert (
            made.text == "new/deep/file made, 1 line added, 0 removed" and (tree / "new/deep/file").read_bytes() == b"x"
        )
        assert (
            made.diff
            == "--- /dev/null\n+++ b/new/deep/file\n@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file\n".replace(
                "+1,1", "+1"
            )
        )
        assert (await call(WRITE, at, file_path="run/x", content="y")).is_error
        assert (await call(WRITE, at, file_path=".", content="y")).is_error
        same = await call(WRITE, at, file_path="run", content="b\nc\n")
        assert same.diff == "" and "left as it was" in same.text
        assert sorted(path.name for path in tree.iterdir()) == ["link", "new", "run"]

    session(tree, play)


LINESTEXT = st.text(st.sampled_from("ab \n\r\f\u2028é"), max_size=60)


@settings(max_examples=25, deadline=None)
@given(LINESTEXT, LINESTEXT)
def test_a_diff_makes_one_text_from_the_other(tmp_path_factory, before: str, after: str):
    if not (patch := shutil.which("patch")):
        pytest.skip("there is no patch")
    change = editing.diff(before, after, "f")
    assert bool(change) == (before != after)
    if change:
        file = tmp_path_factory.mktemp("patched") / "f"
        file.write_bytes(before.encode())
        subprocess.run([patch, "-s", "--binary", "-u", str(file)], input=change.encode(), check=True, timeout=10)
        assert (file.read_bytes() if file.exists() else b"") == after.encode()


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("ab\n"), max_size=20), st.text(st.sampled_from("ab\n"), max_size=4), st.text(max_size=4))
def test_an_edit_is_exact_or_refused(text: str, old: str, new: str):
    places = [at for at in range(len(text)) if text.startswith(old, at)] if old else []
    try:
        made = editing.edited(editing.Text(text), old, new).text
    except editing.Refused:
        assert len(places) != 1 or old == new
    else:
        assert len(places) == 1 and made == text[: places[0]] + new + text[places[0] + len(old) :]


@given(st.binary(max_size=60))
def test_any_text_comes_back_as_the_same_bytes(data: bytes):
    try:
        assert editing.read(data).data() == data
    except editing.Refused:
        assert b"\0" in data


def test_a_diff_of_a_large_file_is_quick():
    before = "".join(f"line {n % 7}\n" for n in range(60_000))
    began = time.monotonic()
    small = editing.diff(before, before.replace("line 3\n", "x\n", 1), "f")
    assert small.count("\n") == 11 and small.splitlines()[2] == "@@ -1,7 +1,7 @@"
    large = editing.diff(before, before.replace("3", "x"), "f")
    assert large.splitlines()[2] == "@@ -1,60000 +1,60000 @@" or large.count("\n") > 59_990
    assert time.monotonic() - began < 3


# ------------------------------------------------------------------------------------------------------- the searches


@pytest.fixture
def searched(tree: Path) -> Path:
    files = {
        ".gitignore": "build/\n*.log\n!keep.log\n/top.txt\n",
        "src/.gitignore": "c.py\n!d.log\n",
        "src/a.py": "import os\nprint('hello')\nfoo\n",
        "src/b b.ts": "hello ts\n",
        "src/c.py": "hello\n",
        "src/d.log": "hello\n",
        "src/top.txt": "HELLO\n",
        "build/x.py": "hello\n",
        "x.log": "hello\n",
        "keep.log": "hello\n",
        "top.txt": "hello\n",
        ".hidden/h.py": "hello\n",
        ".git/config": "hello\n",
        "long.js": "hello" + "x" * 1000 + "\n",
    }
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (tree / "binary").write_bytes(b"\0hello\n")
    (tree / "loop").symlink_to(".")
    return tree


@pytest.mark.parametrize("program", ["ripgrep", "ours"])
def test_searching_is_the_same_with_and_without_ripgrep(program: str, searched: Path, monkeypatch):
    if program == "ours":
        monkeypatch.setattr(search.shutil, "which", lambda name, path=None: None)
    elif not shutil.which("rg"):
        pytest.skip("ripgrep is not installed")

    async def play(at: Place) -> None:
        found = (await call(GREP, at, pattern="hel+o")).text.splitlines()
        assert [line.split(":")[0] for line in found[:-1]] == [
            ".hidden/h.py", "keep.log", "long.js", "src/a.py", "src/b b.ts", "src/d.log",
        ]  # fmt: skip
        assert found[3] == "src/a.py:2:print('hello')" and found[2].endswith("[… 705 more]")
        assert found[-1] == "[6 matches in 6 files]"
        near = await call(GREP, at, pattern="HELLO", path="src", glob="*.{py,txt}", ignore_case=True, context=1)
        assert (
            near.text
            == "src/a.py-1-import os\nsrc/a.py:2:print('hello')\nsrc/a.py-3-foo\nsrc/top.txt:1:HELLO\n[2 matches in 2 files]"
        )
        names = await call(GREP, at, pattern="o", path="src/a.py", files_only=True)
        assert names.text == "src/a.py: 3\n[3 matches in 1 file]"
        assert (await call(GREP, at, pattern="hello", limit=2)).text.endswith(
            "[2 matches in 2 files; stopped at 2; narrow the search]"
        )
        assert (await call(GREP, at, pattern="nothing like it")).text == "[0 matches in 0 files]"
        assert (await call(GREP, at, pattern="(")).is_error and (
            await call(GREP, at, pattern="x", path="none")
        ).is_error
        assert (await call(GREP, at, pattern="-e")).text == "[0 matches in 0 files]"
        listed = await call(GLOB, at, pattern="*.py")
        assert listed.text == ".hidden/h.py\nsrc/a.py\n[2 files]"
        assert (await call(GLOB, at, pattern="src/**", limit=2)).text.endswith(
            "[2 files; stopped at 2; narrow the search]"
        )
        every = (await call(GLOB, at, pattern="*")).text.splitlines()[:-1]
        assert every == sorted(every) and len(every) == 10 and "src/b b.ts" in every

    session(searched, play)


def test_a_pattern_that_never_ends_is_ended(searched: Path, monkeypatch):
    (searched / "a.txt").write_text("a" * 40 + "b\n")
    monkeypatch.setattr(search.shutil, "which", lambda name, path=None: None)
    monkeypatch.setattr(search, "SECONDS", 0.5)

    async def play(at: Place) -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.02)
                ticks += 1

        ticking = asyncio.create_task(tick())
        said = await call(GREP, at, pattern="(a+)+$", path="a.txt")
        ticking.cancel()
        assert "stopped after 0.5 s" in said.text and ticks > 10  # nothing else stood still

    session(searched, play)
    assert not living(finding.__file__)


def test_every_tool_is_described_and_survives_nonsense(tree: Path):
    async def play(at: Place) -> None:
        for tool in TOOLS:
            assert tool.schema["additionalProperties"] is False and set(tool.schema["required"]) <= set(
                tool.schema["properties"]
            )
            assert set(tool.paths) <= set(tool.schema["properties"])
            for nonsense in (None, 7, [], {"a": 1}, "\0", "\ud800"):
                arguments = dict.fromkeys(tool.schema["properties"], nonsense)
                outcome = await call(tool, replace(at), **arguments)
                assert outcome.is_error, (tool.name, nonsense, outcome)

    session(tree, play)
    assert reordering("plain") == []


def test_secrets_reach_no_tool_unless_named():
    ours = {
        "PATH": "/bin", "HOME": "/h", "LANG": "C", "KEYBOARD": "us", "TOKENIZERS_PARALLELISM": "0", "AWS_REGION": "x", "PWD": "/",
        "ANTHROPIC_API_KEY": "1", "MY_TOKEN": "2", "AWS_SECRET_ACCESS_KEY": "3", "AWS_PROFILE": "p", "DB_PASSWORD": "4", "github_token": "5",
        "SSH_AUTH_SOCK": "/s", "PLAIN": "ghp_" + "a" * 36, "DATABASE_URL": "postgres://me:abcdefgh@h/d", "BASH_ENV": "/x", "BASH_FUNC_ls%%": "() { :; }",
    }  # fmt: skip
    kept = environment_given(ours)
    assert {name for name in ours if name in kept} == {
        "PATH", "HOME", "LANG", "KEYBOARD", "TOKENIZERS_PARALLELISM", "AWS_REGION", "PWD",
    }  # fmt: skip
    assert "MY_TOKEN" in withheld(ours) and "PATH" not in withheld(ours)
    assert environment_given(ours, named=["MY_TOKEN"])["MY_TOKEN"] == "2"
    assert kept["GIT_TERMINAL_PROMPT"] == "0"
