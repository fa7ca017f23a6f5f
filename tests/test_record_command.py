"""`cutline record` as its owner meets it: a bare home, real files, consent, exit codes, one-line errors."""

import json
import os
import pty
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bodies
import made
from cutline import record
from cutline.cli import main
from cutline.events import calls
from cutline.record import Document, Record, default_path
from cutline.sessions.claude_code import folder_name
from cutline.sessions.clients import is_session, open_path
from cutline.wire import anthropic as wire
from test_record import exchange, session
from test_record_keeping import telling


class Home:
    """Runs `cutline` in this process, in a bare home with one project."""

    def __init__(self, home: Path, capture) -> None:
        self.home, self.project, self._capture = home, home / "proj", capture
        self.project.mkdir(parents=True)
        self.folder = home / ".claude" / "projects" / folder_name(self.project)
        self.code, self.out, self.err = 0, "", ""

    def __call__(self, *args: str) -> str:
        """What is printed; the exit code and the errors stand in `code` and `err`."""
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        self.code = ended.value.code or 0
        said = self._capture.readouterr()
        self.out, self.err = said.out.decode(), said.err.decode()
        return self.out

    def json(self, *args: str):
        return json.loads(self(*args, "--json"))

    def fails(self, code: int, args: tuple[str, ...], *words: str) -> None:
        """One line on standard error, nothing on standard output."""
        self(*args)
        assert self.code == code and self.out == "" and self.err.count("\n") == 1, (self.out, self.err)
        assert "\x1b" not in self.err.removeprefix("\x1b[31m\x1b[1m").replace("\x1b[0m", "")
        for word in words:
            assert word in self.err, self.err

    def record(self, **values) -> Record:
        return Record(default_path(), **values)

    def session(self, checkpoint: bool = False, id: str = made.ID) -> Path:
        return made.small(checkpoint, id, str(self.project)).write(self.folder / f"{id}.jsonl")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary) -> Home:
    found = Home(tmp_path / "home", capsysbinary)
    for name in ("XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CUTLINE_RECORD", "CUTLINE_RUN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(found.home))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.chdir(found.project)
    return found


def on_a_terminal(home: Home, args: list[str], answer: bytes) -> tuple[int, str]:
    """A process of its own with a terminal before it, and an answer typed into that."""
    leader, follower = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home.home), "NO_COLOR": "1", "TERM": "xterm"}
    command = [sys.executable, "-c", "from cutline.cli import main; main()", *args]
    process = subprocess.Popen(
        command, cwd=home.project, env=environment, stdin=follower, stdout=follower, stderr=follower
    )
    os.close(follower)
    seen = b""
    try:
        while not seen.rstrip().endswith(b"[y/N]:"):
            seen += os.read(leader, 4096)
        os.write(leader, answer)
        while True:
            seen += os.read(leader, 4096)
    except OSError:
        pass  # the other end is closed
    os.close(leader)
    return process.wait(), seen.decode().replace("\r\n", "\n")


# -------------------------------------------------------------------------------------------------- without a record


@pytest.mark.parametrize("command", ((), ("stats",), ("verify",), ("retention",), ("mask",)))
def test_where_there_is_no_record_that_is_said_and_none_is_begun(home: Home, command: tuple[str, ...]):
    assert "No record yet" in home("record", *command) and home.code == 0
    assert home.json("record", *command)["exists"] is False
    assert not default_path().exists()


def test_what_is_said_when_a_record_is_begun():
    told = record.greeting("/home/user/record.db")
    for words in ("/home/user/record.db", "yours alone", "90 days", "cutline record retention", "--no-record"):
        assert words in told and "\n" not in told


def test_what_needs_a_record_says_how_one_begins(home: Home):
    for command in (("export",), ("delete", "abc", "--yes")):
        home.fails(2, ("record", *command), "no record yet", "cutline run")
    home.fails(2, ("record", "import", "nowhere.jsonl"), "nowhere.jsonl", "no such file")
    assert not default_path().exists()


# ------------------------------------------------------------------------------------------------------------- stats


def test_stats_say_what_there_is_and_how_it_is_kept(home: Home):
    with home.record() as store:
        for turns in (1, 2, 3):
            store.write(exchange(bodies.body(session(turns)), "one", project="/a", at=time.time() - 7_200))
        store.write(exchange(bodies.body(session(1)), "one", agent="explore-1", project="/a"))
        store.write(telling("about races", "two"))
    told = home("record")
    for words in (
        "sessions",
        "sub-agents",
        "as the client made them",
        "/a",
        "2 h ago",
        "90 days",
        "stored as they come",
    ):
        assert words in told, told
    found = home.json("record", "stats")
    assert (found["sessions"], found["agents"], found["requests"], found["calls"], found["texts"]) == (2, 1, 5, 4, 4)
    assert found["stored"] > 0 and found["bodies"] > 1_000 and found["path"] == str(default_path())
    assert {(row["session"], row["agent"]) for row in found["listed"]} == {
        ("one", ""),
        ("one", "explore-1"),
        ("two", ""),
    }
    home.fails(2, ("record", "--json", "stats"), "--json belongs behind")


def test_verify_names_what_is_broken_with_code_1(home: Home):
    with home.record() as store:
        store.write(telling("about races"))
    assert "Sound: 1 request rebuilt, 1 call" in home("record", "verify") and home.code == 0
    assert home.json("record", "verify")["sound"] is True
    data = default_path().read_bytes()
    import sqlite3

    connection = sqlite3.connect(default_path())
    connection.execute("UPDATE blob SET data = x'00' WHERE id = 1")
    connection.commit()
    connection.close()
    told = home("record", "verify")
    assert home.code == 1 and "blob 1: " in told and "request 1 of session s1" in told
    assert home.json("record", "verify")["faults"] and home.code == 1
    default_path().write_bytes(data[:5_000] + b"\xff" * 3_000 + data[8_000:])
    home("record", "verify")
    assert home.code in (1, 2) and "Traceback" not in home.err


# ------------------------------------------------------------------------------------------------------------ delete


def test_delete_asks_and_then_nothing_is_left(home: Home):
    with home.record() as store:
        store.write(telling("qxjzkvw", "gone-1234"))
        store.write(telling("about races", "kept"))
        address = store.search(None, ["qxjzkvw"])[0].found.call.address
    home.fails(2, ("record", "delete", "gone"), "--yes")
    code, seen = on_a_terminal(home, ["record", "delete", "gone"], b"n\n")
    assert code == 130 and "gone-1234  1 request\x1b" in seen
    code, seen = on_a_terminal(home, ["record", "delete", "gone"], b"y\n")
    assert code == 0 and "Deleted gone-1234: 1 request, 1 call, 3 texts, 0 documents" in seen.replace("\n", " "), seen
    assert b"qxjzkvw" not in b"".join(file.read_bytes() for file in default_path().parent.iterdir())
    home.fails(2, ("recall", address), "nothing at the address", "gone for good")
    home.fails(2, ("record", "delete", "gone", "--yes"), "no session “gone”")
    assert home.json("record", "delete", "kept", "--yes")["sessions"] == ["kept"]


@pytest.mark.parametrize("command", (("record",), ("record", "verify"), ("recall", "races"), ("cost", "--record")))
def test_what_others_could_read_is_closed_by_whoever_looks_and_said(home: Home, command: tuple[str, ...]):
    with home.record() as store:
        store.write(exchange(telling("about races").body, project=str(home.project)))
    default_path().chmod(0o644)
    default_path().parent.chmod(0o755)
    home(*command)
    assert home.err.count("was open to others (mode 0755); it is 0700 now\n") == 1, home.err
    assert home.err.count("was readable by others (mode 0644); it is 0600 now\n") == 1
    found = [stat.S_IMODE(kept.stat().st_mode) for kept in (default_path(), default_path().parent)]
    assert found == [0o600, 0o700] and home(*command) and home.err == ""


def test_a_run_says_it_before_it_begins(home: Home, monkeypatch: pytest.MonkeyPatch):
    home.record().close()
    default_path().chmod(0o644)
    monkeypatch.setenv("PATH", "")
    home("run", "claude")
    assert home.code == 2 and home.err.count("(mode 0644); it is 0600 now\n") == 1, home.err
    assert stat.S_IMODE(default_path().stat().st_mode) == 0o600


def test_an_ambiguous_and_an_odd_name_delete_nothing(home: Home):
    with home.record() as store:
        for name in ("aa-1", "aa-2", ""):
            store.write(telling("x", name))
        store.put_document(Document("paper-1", "/p", 1.0, "", "{}", "{}", "[]"))
    home.fails(2, ("record", "delete", "aa", "--yes"), "fits 2 sessions", "aa-1")
    home.fails(2, ("record", "delete", "../../etc/passwd\x1b[2J\n", "--yes"), "no session “../../etc/passwd [2J”")
    assert home.json("record", "delete", "paper", "--yes")["documents"] == 1
    assert home.json("record", "delete", "", "--yes")["sessions"] == [""]
    assert home.json("record", "stats")["sessions"] == 2


# ---------------------------------------------------------------------------------------------------- export, import


def test_an_export_can_be_imported_elsewhere(home: Home, monkeypatch: pytest.MonkeyPatch):
    with home.record() as store:
        for turns in (1, 2):
            store.write(exchange(bodies.body(session(turns)), "one"))
        store.write(telling("about races", "two"))
    assert home.json("record", "export", "-o", "all.jsonl")["lines"] > 5
    assert stat.S_IMODE(Path("all.jsonl").stat().st_mode) == 0o600
    assert Path("all.jsonl").read_text() == home("record", "export")
    assert "races" not in home("record", "export", "one") and home.code == 0
    home.fails(2, ("record", "export", "--json"), "-o")
    home.fails(2, ("record", "export", "three"), "no session “three”")
    monkeypatch.setenv("XDG_DATA_HOME", str(home.home / "other"))
    assert home.json("record", "import", "all.jsonl") == {
        "files": 1, "added": 3, "known": 0, "older_than_kept": 0, "failed": [],
    }  # fmt: skip
    assert home.json("record", "import", "all.jsonl")["known"] == 3
    with home.record(readonly=True) as store:
        assert store.history("one").body == bodies.body(session(2)) and store.faults() == []
    assert list(home.project.glob("all.jsonl*")) == [Path.cwd() / "all.jsonl"]


def test_session_files_are_imported_with_their_sub_agents(home: Home):
    path = home.session(checkpoint=True)
    helper = made.Session(cwd=str(home.project))
    helper.human("Look around.")
    helper.step("Listing, to see what is there.", "ls helper-only", "a.py")
    helper.agent({"type": "text", "text": "One file."})
    helper.write(path.with_suffix("") / "subagents" / "agent-a1b2.jsonl")
    found = home.json("record", "import", str(home.folder))
    assert found["files"] == 1 and found["failed"] == [] and found["added"] == 4
    assert home.json("record", "import", str(path))["added"] == 0
    with home.record(readonly=True) as store:
        assert {(row.session, row.agent, row.project) for row in store.sessions()} == {
            (made.ID, "", str(home.project)),
            (made.ID, "a1b2", str(home.project)),
        }
        rows = [row for row in store.requests(made.ID) if not row.agent]
        # One for each human turn that was answered, and the whole; the times are those of the turns.
        assert [row.kind for row in rows] == ["file"] * 3 and len({row.at for row in rows}) == 3
        assert sum(row.usage["output_tokens"] for row in rows) == 60 * 13
        assert store.faults() == [] and len(store.search(str(home.project), ["31 passed"])) == 4
    path.rename(path.with_name("agent-notes.jsonl"))  # a name that only begins like a sub-agent's
    found = home.json("record", "import", str(home.folder))
    assert (found["files"], found["added"], found["failed"]) == (1, 3, [])
    path.with_name("agent-notes.jsonl").unlink()
    # The file is gone; the record has it.
    listed = home.json("recall", "--session", made.ID[:6], "helper-only")
    assert [entry["session"] for entry in listed] == [made.ID]


DATA = bodies.DATA.parent
KEPT_AS_FILES = (
    "claude-code",
    "codex",
    "opencode",
    "gemini-cli",
    "pi",
    "copilot-cli",
    "openhands",
    "swe-agent",
)


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not there")
@pytest.mark.parametrize("kind", KEPT_AS_FILES)
def test_every_client_s_session_files_are_imported(home: Home, kind: str):
    """Each call of the file is then found in the record, under the address that the file gives it."""
    files = sorted((path for path in (DATA / kind).iterdir() if path.stat().st_size > 10_000), key=_size)
    path = next(path for path in files if (kind == "claude-code" or is_session(path)) and _answered(path))
    found = home.json("record", "import", str(path))
    assert found["failed"] == [] and found["added"]
    assert home.json("record", "import", str(path))["added"] == 0
    with home.record(readonly=True) as store:
        assert store.faults() == []
        assert {row.session for row in store.sessions() if not row.agent} == {open_path(path).id}
        assert all(store.calls(None, address) for address in _answered(path))


def _size(path: Path) -> int:
    return path.stat().st_size


def _answered(path: Path) -> set[str]:
    """The addresses of a session's completed calls."""
    return {one.call.address for one in calls(wire.read(open_path(path).history.body)) if one.result}


def test_sessions_are_imported_by_id_and_all_that_a_client_keeps(home: Home):
    home.session()
    assert home.json("record", "import", made.ID[:8])["added"] == 3
    assert home.json("record", "import", "--client", "claude-code")["added"] == 0
    assert home.json("record", "import", "--client", "all")["known"] == 3
    home.fails(2, ("record", "import", "--client", "codex"), "no session in what codex keeps")
    home.fails(2, ("record", "import"), "nothing to take in")
    home.fails(2, ("record", "import", "ffffffff"), "no session with an id")


def test_what_cannot_be_read_is_named_and_the_rest_is_taken(home: Home):
    home.session()
    (home.folder / "torn.jsonl").write_text('{"type":"us')
    found = home.json("record", "import", str(home.folder))
    assert found["files"] == 1 and [Path(one["path"]).name for one in found["failed"]] == ["torn.jsonl"]
    home("record", "import", str(home.folder / "torn.jsonl"))
    assert home.code == 2 and "not taken in" in home.err and "Traceback" not in home.err
    os.mkfifo(home.folder / "pipe.jsonl")  # nobody writes into it: it would be waited for
    home("record", "import", str(home.folder / "pipe.jsonl"))
    assert home.code == 2 and "is no regular file" in home.err
    (home.home / "empty").mkdir()
    home.fails(2, ("record", "import", str(home.home / "empty")), "no session in")


def test_an_import_of_what_is_too_old_to_stay_says_so(home: Home):
    with home.record() as store:
        store.write(telling("old", at=time.time() - 200 * 86_400))
    home("record", "export", "-o", "old.jsonl")
    assert "retention off keeps them" in home("record", "import", "old.jsonl")


# ------------------------------------------------------------------------------------------------- retention and mask


def test_retention_is_shown_and_set(home: Home):
    with home.record() as store:
        store.write(telling("old", "old", at=time.time() - 40 * 86_400))
    assert "90 days" in home("record", "retention") and "none is older" in home.out
    assert "30 days" in home("record", "retention", "30") and "1 are older" in home.out
    assert home.json("record", "retention") == {"days": 30, "older": ["old"]}
    assert "until you delete it" in home("record", "retention", "off")
    for odd in ("0", "-3", "soon", "1.5", "99999999999"):
        home("record", "retention", odd)
        assert home.code == 2 and home.out == "" and "Traceback" not in home.err
    assert home.json("record", "retention")["days"] is None


def test_masking_is_off_until_it_is_asked_for(home: Home):
    assert home("record", "mask", "on").startswith("Secrets of known forms are masked")
    assert "not byte for byte" in home.out and "anthropic key" in home.out
    assert home.json("record", "mask")["masking"] is True and "masked on the way in" in home("record")
    assert "byte for byte, secrets included" in home("record", "mask", "off")
    assert home.json("record", "stats")["masking"] is False
