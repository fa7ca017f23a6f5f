"""`cutline setup`: what it writes, that it asks, and that it takes back exactly what it gave."""

from __future__ import annotations

import errno
import json
import os
import pty
import shutil
import stat
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from cutline.cli import cli
from cutline.errors import InputError
from cutline.launch import setup, setup_text, start
from cutline.launch.setup_clients import NAMES
from cutline.launch.setup_text import Entry

SERVER = Entry(("mcpServers", "cutline"), {"command": "/usr/bin/python3", "args": ["-m", "cutline", "mcp"]})
ALLOWED = Entry(("permissions", "allow"), ["mcp__cutline__recall", "mcp__cutline__say"], joins=True)
TABLE = Entry(("mcp_servers", "cutline"), {"command": 'C:\\py "3"', "args": ["mcp"], "startup_timeout_sec": 30})

SECRET = "sk-of-the-users-own"
THEIRS = {
    "claude": {
        ".claude.json": '{\n  "numStartups": 3,\n  "mcpServers": {\n    "docs": {"command": "docs"}\n  },\n  "x": "%s"\n}',
        ".claude/settings.json": '{"model": "opus", "permissions": {"allow": ["Bash(ls)"], "deny": []}}\n',
    },
    "codex": {".codex/config.toml": '# mine\nmodel = "gpt-5.5"\n\n[mcp_servers.docs] # too\ncommand = "docs"'},
    "gemini": {".gemini/settings.json": '{\n  // mine\n  "model": {"name": "auto"},\n}\n'},
    "opencode": {
        ".config/opencode/opencode.jsonc": '{\r\n\t"model": "a/b", // mine\r\n\t"mcp": {\r\n\t\t"docs": {"type": "local"}, // too\r\n\t},\r\n}\r\n'
    },
    "pi": {".pi/agent/settings.json": "{}"},
}


@dataclass(frozen=True)
class Home:
    """A user's home; commands are given it as the environment."""

    root: Path

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())

    def __call__(self, *words: str) -> Result:
        return CliRunner().invoke(cli, ["setup", *words])

    def json(self, *words: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self(*words, "--json").stdout)
        return told

    def all(self) -> dict[str, tuple[int, bytes]]:
        """Everything that stands in it: modes, contents, links."""
        return {
            str(path.relative_to(self.root)): (
                path.lstat().st_mode,
                bytes(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b"",
            )
            for path in sorted(self.root.rglob("*"))
        }


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return Home(tmp_path / "home")


class TestTheText:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("", '{\n  "mcpServers": {\n    "cutline": 1\n  }\n}\n'),
            ("{}", '{\n  "mcpServers": {\n    "cutline": 1\n  }\n}'),
            ('{"a": 1}', '{"a": 1, "mcpServers": { "cutline": 1 }}'),
            ('{\n\t"a": 1 // b\n}\n', '{\n\t"a": 1, // b\n\t"mcpServers": {\n\t\t"cutline": 1\n\t}\n}\n'),
            ('{\n  "mcpServers": {},\n}', '{\n  "mcpServers": {\n    "cutline": 1\n  },\n}'),
            ('{\n "mcpServers": {\n  "a": 1, /* b\n c */\n },\n}', '{\n "mcpServers": {\n  "a": 1, /* b\n c */\n  "cutline": 1,\n },\n}'),
            ('{\r\n  "mcpServers": { // a\r\n  }\r\n}', '{\r\n  "mcpServers": {\r\n    "cutline": 1 // a\r\n  }\r\n}'),
        ],
    )  # fmt: skip
    def test_an_entry_is_put_behind_the_last_one_as_a_person_would(self, before: str, after: str):
        put = setup_text.put("json", before.encode(), [Entry(("mcpServers", "cutline"), 1)])
        assert put.data.decode() == after
        assert setup_text.undone(put.data, put.steps) == before.encode()

    @settings(max_examples=100, deadline=None)
    @given(data=st.data())
    def test_of_any_settings_every_byte_stays_and_comes_back(self, data: st.DataObject):
        before = data.draw(documents()).encode()
        try:
            put = setup_text.put("json", before, [SERVER, ALLOWED])
        except InputError:
            held = setup_text.value("json", before)  # something of the user's stands in an entry's way
            assert any(not isinstance(held.get(key, {}), dict) for key in ("mcpServers", "permissions")) or (
                "cutline" in held.get("mcpServers", {}) or not isinstance(held["permissions"].get("allow", []), list)
            )
            return
        assert setup_text.undone(put.data, put.steps) == before
        assert is_within(before, put.data), "nothing of the user's was changed or moved"
        assert setup_text.holds("json", put.data, SERVER) and setup_text.holds("json", put.data, ALLOWED)
        assert setup_text.put("json", put.data, [SERVER, ALLOWED]).data == put.data
        # The client writes something of its own meanwhile; then ours goes, and only ours.
        theirs = Entry(("theirs",), {"a": [1]})
        try:
            edited = setup_text.put("json", put.data, [theirs]).data
        except InputError:
            return
        left = setup_text.take("json", edited, put.entries, put.made)
        expected = setup_text.put("json", before, [theirs]).data
        assert setup_text.value("json", left) == setup_text.value("json", expected)
        assert comments(left) == comments(before)

    @pytest.mark.parametrize("before", ["", "# a\n", "a = 1", "[mcp_servers]\n", '[mcp_servers.docs]\ncommand = "d"\n'])
    def test_a_table_stands_at_the_end_and_goes_alone(self, before: str):
        put = setup_text.put("toml", before.encode(), [TABLE])
        assert put.data.startswith(before.encode())
        assert tomllib.loads(put.data.decode())["mcp_servers"]["cutline"] == TABLE.value
        assert setup_text.undone(put.data, put.steps) == before.encode()
        more = b'\n# theirs\n[mcp_servers.cutline.env]\nA = "1"\n\n# last\n[z] # z\nq = 1\n'
        left = setup_text.take("toml", put.data + more, put.entries, put.made).decode()
        assert tomllib.loads(left) == {**tomllib.loads(before), "z": {"q": 1}}
        assert left.startswith(before) and left.endswith("# theirs\n\n# last\n[z] # z\nq = 1\n")

    @pytest.mark.parametrize(
        ("kind", "text", "said"),
        [
            ("json", '{"mcpServers": []}', "mcpServers is no table of settings there"),
            ("json", '{"mcpServers": {"cutline": {}}}', "stands there already, and is another's"),
            ("json", '{"mcpServers": {}, "mcpServers": {}}', "mcpServers stands there twice"),
            ("json", '["a"]', "it has to be a JSON object"),
            ("json", '{"a": 1', "no JSON"),
            ("json", "\ufeff{}", "a byte order mark"),
            ("toml", "mcp_servers = {}", "can't be put in without touching what is there"),
            ("toml", "a = ", "no TOML"),
        ],
    )
    def test_what_is_in_the_way_is_said_in_one_line(self, kind: Any, text: str, said: str):
        with pytest.raises(InputError, match=said) as told:
            setup_text.put(kind, text.encode(), [SERVER if kind == "json" else TABLE])
        assert "\n" not in str(told.value)

    @pytest.mark.parametrize("before", ["", "# mine\n\n[a]\nb = 1\n", "b = 1"])
    def test_what_belongs_to_no_table_stands_before_all_and_goes_alone(self, before: str):
        entry = Entry(("wait_ms",), 10_000, yields=True)
        put = setup_text.put("toml", before.encode(), [entry, TABLE])
        assert tomllib.loads(put.data.decode())["wait_ms"] == 10_000
        assert setup_text.undone(put.data, put.steps) == before.encode()
        left = setup_text.take("toml", put.data + b"\n[z]\n", put.entries, put.made)
        assert left.decode().startswith(before) and tomllib.loads(left.decode()) == {**tomllib.loads(before), "z": {}}

    def test_what_the_user_has_set_counts_where_ours_yields(self):
        before = b"wait_ms = 5\n"
        put = setup_text.put("toml", before, [Entry(("wait_ms",), 10_000, yields=True)])
        assert put == setup_text.Put(before)

    def test_a_heading_within_a_text_is_none(self):
        before = b'x = """\n[mcp_servers.cutline]\n"""\n'
        put = setup_text.put("toml", before, [TABLE])
        assert setup_text.undone(put.data, put.steps) == before
        with pytest.raises(InputError, match="take it out by hand"):
            setup_text.take("toml", put.data + b"y = 1\n", put.entries, put.made)

    def test_what_the_user_had_already_is_not_taken_out(self):
        before = b'{"permissions": {"allow": ["mcp__cutline__say"]}}'
        put = setup_text.put("json", before, [ALLOWED])
        left = setup_text.take("json", put.data.replace(b"{", b'{"b": 1, ', 1), put.entries, put.made)
        assert json.loads(left) == {"b": 1, **json.loads(before)}


@pytest.mark.parametrize("own", [False, True], ids=["bare", "with settings"])
@pytest.mark.parametrize("client", NAMES)
class TestEveryClient:
    def test_is_set_up_once_and_comes_back_byte_for_byte(self, home: Home, client: str, own: bool):
        if own:
            home.write(THEIRS[client])
            for name in THEIRS[client]:
                (home.root / name).chmod(0o640)
        before = home.all()
        first = home(client, "--yes")
        assert first.exit_code == 0 and "cutline" in first.stdout, first.output
        written = home.all()
        for name, (mode, data) in before.items():
            if stat.S_ISREG(mode):
                assert written[name][0] == mode, "the mode stays"
                assert is_within(data, written[name][1])
        new = [mode for name, (mode, _) in written.items() if name not in before]
        assert all(mode & 0o077 == 0 for mode in new), "what is new is the user's alone"
        again = home(client, "--yes")
        assert again.exit_code == 0 and again.stdout == f"nothing to do: {client} is set up\n"
        assert home.all() == written
        assert setup.state(client, os.environ, sys.executable) == "set"
        back = home(client, "--remove", "--yes")
        assert back.exit_code == 0 and home.all() == before
        assert home(client, "--remove").stdout == f"nothing to do: {client} is not set up\n"

    def test_is_asked_for_before_anything_is_written(self, home: Home, client: str, own: bool):
        if own:
            home.write(THEIRS[client])
        before = home.all()
        done = home(client)
        assert done.exit_code == 2 and home.all() == before
        assert "+++ " in done.stdout and "nothing was written; --yes" in done.stderr
        told = home.json(client)
        assert told["written"] is False and all(file["diff"].startswith("--- ") for file in told["files"])


def test_a_client_that_wrote_its_settings_meanwhile_loses_our_entries_alone(home: Home):
    home.write(THEIRS["claude"])
    assert home("claude", "--yes").exit_code == 0
    settings_, state = home.root / ".claude" / "settings.json", home.root / ".claude.json"
    held = json.loads(state.read_bytes())
    assert held["mcpServers"]["cutline"]["args"][-2:] == ["mcp", "--mandate"]
    held |= {"numStartups": 4, "projects": {"/p": {}}}
    held["mcpServers"] = {**held["mcpServers"], "later": {"command": "x"}}
    state.write_text(json.dumps(held, indent=2))  # as the client does
    assert home("claude").stdout == "nothing to do: claude is set up\n"
    settings_.write_text(settings_.read_text().replace("Bash(ls)", "Bash(cat)"))
    assert home("claude", "--remove", "--yes").exit_code == 0
    del held["mcpServers"]["cutline"]
    assert state.read_text() == json.dumps(held, indent=2)
    assert settings_.read_text() == THEIRS["claude"][".claude/settings.json"].replace("Bash(ls)", "Bash(cat)")


def test_what_the_client_began_meanwhile_stays(home: Home):
    assert home("claude", "--yes").exit_code == 0
    state = home.root / ".claude.json"
    state.write_text(json.dumps({**json.loads(state.read_bytes()), "userID": "u"}, indent=2))
    assert home("claude", "--remove", "--yes").exit_code == 0
    assert json.loads(state.read_bytes()) == {"userID": "u"}
    assert sorted(path.name for path in home.root.iterdir()) == [".claude.json"]


def test_a_file_of_ours_that_was_edited_is_kept_under_another_name(home: Home):
    assert home("gemini", "--yes").exit_code == 0
    policy = home.root / ".gemini" / "policies" / "cutline.toml"
    policy.write_text("# mine\n")
    done = home("gemini", "--remove", "--yes")
    assert "it stays as cutline.toml.kept" in done.stdout
    assert [path.name for path in policy.parent.iterdir()] == ["cutline.toml.kept"]
    assert policy.with_name("cutline.toml.kept").read_text() == "# mine\n"
    assert not (home.root / ".gemini" / "extensions").exists()


def test_another_interpreter_takes_the_place_of_the_first_and_all_of_it_comes_back(home: Home):
    home.write(THEIRS["opencode"])
    before = home.all()
    for python in ("/opt/one/python", "/opt/two/python"):
        setup.write(setup.setting("opencode", os.environ, python))
    path = home.root / ".config/opencode/opencode.jsonc"
    assert b"/opt/two/python" in path.read_bytes() and b"/opt/one" not in path.read_bytes()
    assert setup.state("opencode", os.environ, "/opt/three/python") == "changed"
    path.write_bytes(path.read_bytes().replace(b"cutline", b"gone", 1))
    assert setup.state("opencode", os.environ, "/opt/two/python") == "changed"
    path.write_bytes(path.read_bytes().replace(b"gone", b"cutline", 1))
    assert home("opencode", "--remove", "--yes").exit_code == 0 and home.all() == before


@pytest.mark.parametrize("client", NAMES)
def test_what_setup_wrote_is_known_where_what_undoes_it_was_lost(home: Home, client: str):
    home.write(THEIRS[client])
    assert home(client, "--yes").exit_code == 0
    shutil.rmtree(home.root / ".local")
    assert setup.state(client, os.environ, sys.executable) == "set"
    assert home(client).stdout == f"nothing to do: {client} is set up\n"
    assert home(client, "--remove", "--yes").exit_code == 0
    assert setup.state(client, os.environ, sys.executable) == "not"
    for name, text in THEIRS[client].items():
        assert (home.root / name).read_text().split() == text.split()


def test_a_link_stays_one(home: Home):
    home.write({"dotfiles/settings.json": "{}\n"})
    (home.root / ".claude").mkdir()
    (home.root / ".claude" / "settings.json").symlink_to(home.root / "dotfiles" / "settings.json")
    before = home.all()
    assert home("claude", "--yes").exit_code == 0
    assert (home.root / ".claude" / "settings.json").is_symlink()
    assert b"mcp__cutline__say" in (home.root / "dotfiles" / "settings.json").read_bytes()
    assert home("claude", "--remove", "--yes").exit_code == 0 and home.all() == before


def test_nothing_that_the_user_wrote_is_kept(home: Home):
    home.write({name: text.replace("%s", SECRET) for name, text in THEIRS["claude"].items()})
    assert home("claude", "--yes").exit_code == 0
    (kept,) = (home.root / ".local/share/cutline/setup").iterdir()
    told = kept.read_text()
    assert SECRET not in told and "Bash(ls)" not in told and "docs" not in told


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("claude", ".claude.json", '{"mcpServers": {"cutline": {"command": "mine"}}}'),
        ("codex", ".codex/config.toml", '[mcp_servers.cutline]\ncommand = "mine"\n'),
        ("gemini", ".gemini/settings.json", '{"mcpServers": {"cutline": {"command": "mine"}}} // mine'),
        ("gemini", ".gemini/policies/cutline.toml", "# mine"),
        ("opencode", ".config/opencode/opencode.json", '{"mcp": {"cutline": {"type": "local"}}}'),
        ("pi", ".pi/agent/mcp.json", '{"mcpServers": {"cutline": {"command": "mine"}}}'),
        ("pi", ".pi/agent/mcp.json", "no JSON"),
    ],
)
def test_what_the_user_named_so_is_not_taken_over(home: Home, client: str, file: str, text: str):
    home.write({file: text})
    if client == "opencode":
        home.write({".config/opencode/opencode.jsonc": "{}"})
    before = home.all()
    done = home(client, "--yes")
    assert done.exit_code != 0 and isinstance(done.exception, InputError)
    assert str(home.root / file) in str(done.exception) and home.all() == before


def test_a_client_that_is_not_known(home: Home):
    assert isinstance(home("emacs", "--yes").exception, InputError) and home.all() == {}


def test_an_interpreter_in_a_cache_would_be_gone_tomorrow(home: Home):
    with pytest.raises(InputError, match="uv tool install cutline"):
        setup.setting("codex", os.environ, "/home/me/.cache/uv/archive-v0/Xy/bin/python")


def test_a_file_that_changed_since_it_was_shown_is_not_written_over(home: Home):
    home.write(THEIRS["claude"])
    plan = setup.setting("claude", os.environ, sys.executable)
    (home.root / ".claude" / "settings.json").write_text("{}")
    before = home.all()
    with pytest.raises(InputError, match="changed in the meantime"):
        setup.write(plan)
    assert home.all() == before


def test_where_one_file_cant_be_written_all_are_as_they_were(home: Home, monkeypatch: pytest.MonkeyPatch):
    home.write({".claude.json": THEIRS["claude"][".claude.json"]})
    before = home.all()
    replace = Path.replace

    def full(path: Path, target: Path) -> Path:
        if target.name == "settings.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", full)
    done = home("claude", "--yes")
    assert "settings.json: no space left on device; all files are as they were" in str(done.exception)
    assert home.all() == before


@pytest.mark.parametrize(("typed", "code"), [(b"n\n", 2), (b"y\n", 0)])
def test_on_a_terminal_it_asks(home: Home, typed: bytes, code: int):
    ours, theirs = pty.openpty()
    try:
        os.write(ours, typed)
        asked = subprocess.run(
            [sys.executable, "-P", "-m", "cutline", "setup", "codex"],
            env={"HOME": str(home.root), "PATH": os.environ["PATH"]},
            stdin=theirs, stdout=theirs, stderr=theirs, timeout=60, check=False,
        )  # fmt: skip
        said = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert asked.returncode == code and "Write this? [y/N]" in said
    assert (home.root / ".codex" / "config.toml").exists() is (code == 0)


def test_every_client_that_can_be_run_can_be_set_up():
    assert set(start.CLIENTS) <= set(NAMES)


# -------------------------------------------------------------------------------------------------- made settings


def is_within(part: bytes, whole: bytes) -> bool:
    """Whether a text is another one without some pieces: every byte is there, in order."""
    rest = iter(whole)
    return all(byte in rest for byte in part)


def comments(data: bytes) -> list[str]:
    """The comments of a text, in order."""
    return [found[0] for found in setup_text._COMMENT.finditer(data.decode()) if found[1] is None]


KEYS = st.sampled_from(["a", "mcpServers", "permissions", "allow", "cutline", 'ü"//', "b, /* {"])
GAPS = st.sampled_from(["", " ", "\n", "\n  ", " // c, }\n", "/* , ] */", "\r\n\t"])
LEAVES = st.sampled_from(["1", "1.50", "true", "null", '"x"', '"// no, {}"', '"\\"/*"', "-0.0e+5"])


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Settings as people write them: comments anywhere, trailing commas, odd blanks, any of our keys."""

    def item(depth: int) -> str:
        kind = draw(st.sampled_from(["leaf", "object", "list"])) if depth < 3 else "leaf"
        return draw(LEAVES) if kind == "leaf" else some(kind, depth + 1)

    def some(kind: str, depth: int) -> str:
        gap = lambda: draw(GAPS)  # noqa: E731
        count = draw(st.integers(0, 3))
        keys = draw(st.lists(KEYS, min_size=count, max_size=count, unique=True)) if kind == "object" else [""] * count
        parts = [f"{gap()}{json.dumps(key) + gap() + ':' + gap() if key else ''}{item(depth)}{gap()}" for key in keys]
        comma = "," + gap() if parts and draw(st.booleans()) else ""
        inside = ",".join(parts) + comma
        return f"{{{inside}{gap()}}}" if kind == "object" else f"[{inside}{gap()}]"

    return draw(GAPS) + some("object", 0) + draw(GAPS)
