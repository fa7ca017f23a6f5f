"""A session moved to another client: every word goes along, in order and by its author; what means nothing there stays."""

import base64
import hashlib
import json
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import made
from conftest import SHARED
from cutline.errors import CutError, InputError
from cutline.sessions import files
from cutline.sessions.clients import client, open_path, sessions
from cutline.sessions.model import Session
from cutline.sessions.moved import New, Written
from cutline.sessions.moving import TARGETS, Move, execute, plan, target
from test_codex_sessions import Rollout
from test_command_line import Shell, fails, shell  # noqa: F401
from test_opencode_sessions import Writer as Opencode
from test_pi_sessions import Writer as Pi

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n a small one").decode()
PROJECT = "CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL)"
# The tools' names as each client's agent sees them; Codex has the server's as a namespace of its own.
CHECKPOINT = {
    "claude-code": "mcp__cutline__micro_handoff",
    "codex": '"name":"micro_handoff","namespace":"mcp__cutline"',
    "opencode": "cutline_micro_handoff",
    "gemini-cli": "mcp_cutline_micro_handoff",
    "pi": "mcp__cutline__micro_handoff",
}
everywhere = pytest.mark.parametrize("to", TARGETS)
abroad = pytest.mark.parametrize("to", TARGETS[1:])


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every client at home in one folder, opencode with a session of its own."""
    return at_home(tmp_path, monkeypatch)


def at_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENCODE_DB", "PI_CODING_AGENT_SESSION_DIR"):
        monkeypatch.delenv(name, raising=False)
    places = {"CLAUDE_CONFIG_DIR": "claude", "CODEX_HOME": "codex", "GEMINI_CLI_HOME": "", "HOME": ""}
    places |= {"PI_CODING_AGENT_DIR": "pi", "XDG_DATA_HOME": "data"}
    for name, place in places.items():
        monkeypatch.setenv(name, str(folder / place))
    data = folder / "data" / "opencode"
    data.mkdir(parents=True)
    opencode(data)
    return folder


def opencode(folder: Path, worktree: str = "/") -> Path:
    """A database of opencode's with one session in it."""
    first = Opencode("ses_first")
    first.human("Hello?")
    first.agent("Hello.")
    path = first.database(folder)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(PROJECT)
        database.execute("INSERT INTO project VALUES ('global', ?)", (worktree,))
    return path


def move(source: Path | Session, to: str, **options: Any) -> tuple[Move, Session]:
    """Move a session; what would be written, and what was, read again."""
    session = open_path(source) if isinstance(source, Path) else source
    done = plan(session, to, cwd="/somewhere", **options)
    written = execute(done)
    return done, client(to).open_session(written.path, written.id)


def messages(session: Session) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    told = json.loads(session.history.body)["messages"]
    for message, origin in zip(told, session.history.origins, strict=True):
        content = message["content"]
        yield origin, [{"type": "text", "text": content}] if isinstance(content, str) else content


def said(session: Session) -> list[tuple[str, str]]:
    """Who says what, in order; what an editor puts beside a prompt nobody says."""
    return [
        (origin, block["text"])
        for origin, blocks in messages(session)
        for block in blocks
        if block["type"] == "text" and origin in ("agent", "human") and block["text"].strip()
        if origin == "agent" or not block["text"].lstrip().startswith(("<ide_", "<system-reminder>"))
    ]


def calls(session: Session) -> list[tuple[str, Any, str]]:
    """Bare name, arguments and result of each call, in order; every one has its result, directly behind."""
    found: list[tuple[str, Any, str]] = []
    made_: dict[str, tuple[str, Any]] = {}
    for _, blocks in messages(session):
        for block in blocks:
            if block["type"] == "tool_use":
                bare = "micro_handoff" if block["name"].endswith("micro_handoff") else block["name"]
                made_[block["id"]] = (bare, block["input"])
            elif block["type"] == "tool_result":
                content = block["content"]
                parts = [{"text": content}] if isinstance(content, str) else content
                text = "".join(part.get("text", "") for part in parts)
                found.append((*made_.pop(block["tool_use_id"]), text))
    assert not made_
    return found


def raw(session: Session) -> str:
    """All that is stored of a session."""
    if session.path.suffix != ".db":
        return session.path.read_text("utf-8")
    with closing(sqlite3.connect(session.path)) as database:
        asked = "SELECT data FROM {} WHERE session_id = ?"
        found = [
            row[0] for table in ("message", "part") for row in database.execute(asked.format(table), (session.id,))
        ]
    return "\n".join(found)


def small(folder: Path, checkpoint: bool = True) -> Path:
    return made.small(checkpoint).write(folder / f"{made.ID}.jsonl")


class Talk(made.Session):
    """A session of Claude Code with more than words and calls."""

    def pair(self, name: str, arguments: Any, result: Any, error: bool = False) -> str:
        self.calls += 1
        id_ = f"toolu_{self.calls:04}"
        self.agent({"type": "tool_use", "id": id_, "name": name, "input": arguments})
        block = {"tool_use_id": id_, "type": "tool_result", "content": result, "is_error": error}
        self._add("user", {"role": "user", "content": [block]})
        return id_

    def shows(self, *blocks: dict[str, Any], **marks: Any) -> None:
        self._add("user", {"role": "user", "content": list(blocks)}, **marks)


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


# ------------------------------------------------------------------------------------------------ what goes along


@abroad
def test_the_words_go_along_and_the_world_s_part_stays(homes: Path, tmp_path: Path, to: str) -> None:
    source = small(tmp_path)
    before = source.read_bytes(), source.stat().st_mtime_ns
    done, moved = move(source, to)
    assert said(moved) == said(open_path(source)) and len(said(moved)) == 16
    ((name, document, result),) = calls(moved)
    assert (name, document["done"]) == ("micro_handoff", "the reader is fixed")
    assert result.startswith("Checkpoint stored.\n\n[cutline] Left out of the context")
    assert CHECKPOINT[to] in raw(moved)
    assert "= rows[" not in raw(moved) and "the bound, or the buffer?" not in raw(moved)
    assert done.left["calls"] == done.left["results"] == 9 and done.left["thinking"] == 4
    assert (source.read_bytes(), source.stat().st_mtime_ns) == before


@abroad
def test_a_moved_session_is_found_where_the_other_client_looks(homes: Path, tmp_path: Path, to: str) -> None:
    here = tmp_path / "project"
    here.mkdir()
    source = made.small(cwd=str(here)).write(tmp_path / f"{made.ID}.jsonl")
    _, moved = move(source, to)
    (listed,) = (one for one in sessions(here) if one.client == to)
    assert (listed.file.id, listed.file.talks) == (moved.id, True)
    assert listed.file.title == moved.title == "The importer drops the last row. Find out why. (moved from Claude Code)"
    assert moved.cwd == str(here) and not moved.sealed and not moved.damage
    if moved.path.suffix != ".db":
        assert stat.S_IMODE(moved.path.stat().st_mode) == 0o600
    assert not [path for path in homes.rglob("*") if files.TEMPORARY in path.name]


@everywhere
def test_there_and_back_again(homes: Path, tmp_path: Path, to: str) -> None:
    """Each client's own reader gives back what went in; notices and the document go along every time."""
    start = open_path(small(tmp_path))
    session = start
    for stop in (*(name for name in TARGETS if name != "claude-code"), "claude-code"):
        if stop == session.client:
            continue
        session = move(session, stop)[1]
        if stop == to:
            break
    assert said(session) == said(start)
    assert [name for name, *_ in calls(session)] == ["micro_handoff"]
    assert session.title.count("(moved from") == 1
    # One notice of its own, what left behind the checkpoint; the other stands in the checkpoint's result.
    assert raw(session).count("[cutline] Left out") == 2


def test_what_was_asked_and_answered_goes_along_whole(homes: Path, tmp_path: Path) -> None:
    talk = Talk()
    talk.human("Which one?")
    talk.pair("AskUserQuestion", {"questions": [{"question": "Left or right?"}]}, 'answered: "left"')
    talk.pair("Bash", {"command": "rm -r build"}, "The user doesn't want to proceed with this tool use. said: no", True)
    talk.pair("Skill", {"skill": "charts"}, "Launching skill: charts")
    talk.pair("TodoWrite", {"todos": ["one", "two"]}, "Todos have been modified")
    talk.pair("Read", {"file_path": "/x"}, "1\tsecret")
    talk.agent(words("Left it is."))
    source = talk.write(tmp_path / f"{made.ID}.jsonl")
    for to in TARGETS[1:]:
        done, moved = move(source, to)
        assert [(name, result) for name, _, result in calls(moved)] == [
            ("AskUserQuestion", 'answered: "left"'),
            ("Bash", "The user doesn't want to proceed with this tool use. said: no"),
        ]
        assert {key: done.left[key] for key in ("instructions", "to_do_lists", "calls")} == {
            "instructions": 1,
            "to_do_lists": 1,
            "calls": 1,
        }
        failed = [
            block.get("is_error") is True
            for _, blocks in messages(moved)
            for block in blocks
            if block["type"] == "tool_result"
        ]
        assert failed == [False, target(to).ERRORS]


@abroad
def test_behind_a_place_that_is_asked_for_pairs_go_along_under_their_names(
    homes: Path, tmp_path: Path, to: str
) -> None:
    done, moved = move(small(tmp_path), to, at="last")
    assert [name for name, *_ in calls(moved)] == ["micro_handoff", "Bash"]
    assert calls(moved)[1][1:] == ({"command": "head -5 CHANGELOG.md"}, "## 1.2\n- faster")
    assert done.left["calls"] == 8 and said(moved) == said(open_path(small(tmp_path)))
    everything = move(small(tmp_path), to, at=0)[1]
    assert len(calls(everything)) == 10 and "Left out" not in raw(everything)


def test_a_tool_that_is_kept_goes_along(homes: Path, tmp_path: Path) -> None:
    moved = move(small(tmp_path), "codex", keep_tools=("Bash",))[1]
    assert [name for name, *_ in calls(moved)].count("Bash") == 9


@abroad
def test_images_go_along_where_the_other_file_holds_them(homes: Path, tmp_path: Path, to: str) -> None:
    talk = Talk()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PNG}}
    talk.shows(words("Look at these."), image, pdf)
    talk.agent(words("I see."))
    done, moved = move(talk.write(tmp_path / f"{made.ID}.jsonl"), to)
    shown = [block for _, blocks in messages(moved) for block in blocks if block["type"] == "image"]
    assert len(shown) == 2 - done.left["attachments"] and PNG in json.dumps(shown)
    assert done.left["attachments"] == (to in ("codex", "pi"))
    back = move(moved, "claude-code")[1]
    assert image in [block for _, blocks in messages(back) for block in blocks]


def test_what_a_result_shows_goes_along(homes: Path, tmp_path: Path) -> None:
    talk = Talk()
    talk.human("Take a picture.")
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    talk.pair("Screenshot", {}, [words("taken"), picture])
    talk.agent(words("Taken."))
    source = talk.write(tmp_path / f"{made.ID}.jsonl")
    for to in TARGETS[1:]:
        done, moved = move(source, to, at=0)
        assert done.left["result_parts"] == (0 if target(to).SHOWN else 1)
        assert (PNG in raw(moved)) is target(to).SHOWN
        assert calls(moved) == [("Screenshot", {}, "taken")]


@abroad
def test_a_summary_goes_along_as_nobody_s_words(homes: Path, tmp_path: Path, to: str) -> None:
    talk = Talk()
    talk.shows(words("This session is being continued from a previous conversation. Earlier: a leak."),
               isCompactSummary=True)  # fmt: skip
    talk.human("Go on.")
    talk.step("I go on.", "ls", "a\nb")
    talk.agent(words("Done."))
    _, moved = move(talk.write(tmp_path / f"{made.ID}.jsonl"), to)
    assert said(moved) == [("human", "Go on."), ("agent", "I go on."), ("agent", "Done.")]
    assert "Claude Code's summary of what was said before:\\n\\nThis session is being continued" in raw(moved)


@abroad
def test_the_client_s_own_texts_stay_behind(homes: Path, tmp_path: Path, to: str) -> None:
    talk = Talk()
    talk.shows(words("Base directory of the skill: /skills/charts"), isMeta=True)
    talk.shows(words("<system-reminder>\nBe brief.\n</system-reminder>"), words("Draw a chart."))
    talk.agent(words("Drawn."))
    done, moved = move(talk.write(tmp_path / f"{made.ID}.jsonl"), to)
    assert said(moved) == [("human", "Draw a chart."), ("agent", "Drawn.")]
    assert done.left["client_texts"] == 2 and "Be brief" not in raw(moved)


@abroad
def test_half_a_pair_stays_behind_and_words_beside_it_go_along(homes: Path, tmp_path: Path, to: str) -> None:
    talk = Talk()
    talk.human("Go.")
    talk.step("I look.", "ls", "a\nb")
    talk.agent(words("And again."), {"type": "tool_use", "id": "toolu_open", "name": "Bash", "input": {}})
    done, moved = move(talk.write(tmp_path / f"{made.ID}.jsonl"), to)
    assert said(moved) == [("human", "Go."), ("agent", "I look."), ("agent", "And again.")]
    assert calls(moved) == [] and done.left["unanswered_calls"] == 1


@pytest.mark.parametrize("to", ("claude-code", "opencode", "gemini-cli", "pi"))
def test_parallel_calls_in_items_of_their_own_are_one_message(homes: Path, tmp_path: Path, to: str) -> None:
    """Between a call and its result some clients take nothing."""
    rollout = Rollout()
    rollout.person("Look twice.")
    rollout.agent("Two at once.")
    for id_ in ("call_a", "call_b"):
        rollout.item("function_call", name="exec_command", arguments='{"cmd":"ls"}', call_id=id_)
    rollout.agent("Waiting.")
    for id_ in ("call_a", "call_b"):
        rollout.item("function_call_output", call_id=id_, output=f"out of {id_}")
    rollout.agent("Done.")
    _, moved = move(rollout.write(tmp_path), to, at=0)
    kinds = [(origin, *(block["type"] for block in blocks)) for origin, blocks in messages(moved)]
    kinds = [kind for kind in kinds if kind[0] != "harness"]
    results = [("results", "tool_result")] * 2 if to == "pi" else [("results", "tool_result", "tool_result")]
    assert kinds == [
        ("human", "text"),
        ("agent", "text", "text", "tool_use", "tool_use"),
        *results,
        ("agent", "text"),
    ]
    assert [result for *_, result in calls(moved)] == ["out of call_a", "out of call_b"]


@pytest.mark.parametrize("to", ("claude-code", "gemini-cli"))
def test_arguments_that_are_no_object_and_ids_that_providers_refuse(homes: Path, tmp_path: Path, to: str) -> None:
    rollout = Rollout()
    rollout.person("Patch it.")
    for id_ in ("a call", "x" * 64, "x" * 64):
        rollout.item("custom_tool_call", name="apply patch!", input="*** Begin\n+ü", call_id=id_)
        rollout.item("custom_tool_call_output", call_id=id_, output="Done")
    rollout.agent("Patched.")
    _, moved = move(rollout.write(tmp_path), to, at=0)
    assert calls(moved) == [("apply_patch_", {"input": "*** Begin\n+ü"}, "Done")] * 3
    ids = {block["id"] for _, blocks in messages(moved) for block in blocks if block["type"] == "tool_use"}
    assert len(ids) == 3 and all(len(id_) <= 40 and id_.replace("_", "").isalnum() for id_ in ids)


def test_what_an_encrypted_compaction_stands_for_stays_behind_and_is_told(homes: Path, tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.person("Sort them.")
    rollout.add("compacted", message="", replacement_history=[{"type": "compaction", "encrypted_content": "c2VhbGVk"}])
    rollout.person("Go on.")
    rollout.call("call_1", "crown", cmd="ls album")
    rollout.agent("Sorted.")
    done, moved = move(rollout.write(tmp_path), "claude-code")
    assert done.left["sealed_summaries"] == 1
    assert said(moved) == [("human", "Go on."), ("agent", "Sorted.")]


def test_words_that_gemini_cli_would_take_for_a_command_are_sent(homes: Path, tmp_path: Path) -> None:
    """It leaves out what begins so, but not behind another text of the same message."""
    talk = Talk()
    talk.human("/etc/hosts is wrong")
    talk.agent(words("How?"))
    talk.human("? I don't know")
    talk.agent(words("I see."))
    _, moved = move(talk.write(tmp_path / f"{made.ID}.jsonl"), "gemini-cli")
    assert said(moved) == [
        *(("human", "/etc/hosts is wrong"), ("agent", "How?"), ("human", "? I don't know"), ("agent", "I see."))
    ]
    records = [json.loads(line) for line in raw(moved).splitlines()]
    typed = [record for record in records if record.get("type") == "user"][1:]
    assert [record["content"][0]["text"] for record in typed] == ["[cutline] The human typed:"] * 2
    assert [record["displayContent"] for record in typed] == [
        *([{"text": "/etc/hosts is wrong"}], [{"text": "? I don't know"}])
    ]


def test_half_a_character_survives_or_is_refused(homes: Path, tmp_path: Path) -> None:
    talk = Talk()
    talk.human("Broken: HALF")
    talk.agent(words("Seen."))
    source = talk.write(tmp_path / f"{made.ID}.jsonl")
    source.write_bytes(source.read_bytes().replace(b"HALF", b"\\ud83d"))
    with pytest.raises(InputError, match=r"half of a character.*Codex"):
        move(source, "codex")
    assert not list(homes.rglob("rollout-*"))
    for to in ("opencode", "gemini-cli", "pi"):
        moved = move(source, to)[1]
        assert said(moved)[0] == ("human", "Broken: \ud83d")
        assert said(move(moved, "claude-code")[1])[0] == ("human", "Broken: \ud83d")


LETTERS = st.characters(exclude_categories=("Cs",))
TEXTS = st.text(LETTERS, min_size=1, max_size=40).filter(str.strip)


@settings(max_examples=40)
@given(turns=st.lists(st.tuples(TEXTS, st.lists(TEXTS, max_size=3), TEXTS), min_size=1, max_size=4))
def test_any_words_go_round_all_clients(tmp_path_factory: pytest.TempPathFactory, turns: Any) -> None:
    folder = tmp_path_factory.mktemp("round")
    talk = Talk()
    for asked, steps, answer in turns:
        talk.human(f"» {asked}")  # not as a client's own texts begin
        for step in steps:
            talk.step(step, step, step)
        talk.agent(words(answer))
    source = client("claude-code").open_session(talk.write(folder / f"{made.ID}.jsonl"))
    with pytest.MonkeyPatch.context() as patch:
        at_home(folder, patch)
        session: Session = source
        for to in ("codex", "pi", "opencode", "gemini-cli", "claude-code"):
            session = move(session, to)[1]
            assert said(session) == said(source)


# ----------------------------------------------------------------------------------------- it is proven as written


def broken(text: bytes, lines: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """Ways in which a written file can be wrong, with the words that tell it."""
    where = [number for number, line in enumerate(lines) if text in line]
    yield "is missing|read back", [line for number, line in enumerate(lines) if number not in where]
    yield "read back", [line.replace(text, text[:-1] + b"?") for line in lines]
    first = [number for number, line in enumerate(lines) if b"It is range" in line][:1]
    swapped = list(lines)
    swapped[first[0]], swapped[where[0]] = swapped[where[0]], swapped[first[0]]
    yield "read back", swapped
    yield "read back|was never said", [*lines[: where[0] + 1], *lines[where[0] :]]
    yield "read back", [line.replace(b'"role":"assistant"', b'"role":"user"') for line in lines]


@pytest.mark.parametrize("fault", range(5))
def test_a_file_that_says_anything_else_never_gets_its_name(
    homes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    from cutline.sessions.codex import new

    honest: Callable[[New, str], Iterator[bytes]] = new.lines
    told = ""

    def lines(made_: New, id: str) -> Iterator[bytes]:
        nonlocal told
        told, wrong = list(broken(b"changelog line", list(honest(made_, id))))[fault]
        return iter(wrong)

    monkeypatch.setattr(new, "lines", lines)
    with pytest.raises(CutError, match=r"rule [15] broken") as caught:
        move(small(tmp_path), "codex")
    assert caught.value.exit_code == 1
    assert any(word in str(caught.value) for word in told.split("|"))
    assert not list((homes / "codex").rglob("*.jsonl")) and not list(homes.rglob(f"*{files.TEMPORARY}*"))


@pytest.mark.parametrize("lost", (b'"type":"function_call"', b'"type":"function_call_output"', b"external_cutline"))
def test_a_pair_or_a_notice_that_is_lost_is_seen(
    homes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: bytes
) -> None:
    from cutline.sessions.codex import new

    honest = new.lines
    monkeypatch.setattr(new, "lines", lambda made_, id: (line for line in honest(made_, id) if lost not in line))
    with pytest.raises(CutError):
        move(small(tmp_path), "codex")


def test_a_database_is_as_it_was_where_the_proof_fails(
    homes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cutline.sessions.opencode import new

    database = homes / "data" / "opencode" / "opencode.db"

    def state() -> list[Any]:
        with closing(sqlite3.connect(database)) as opened:
            return [opened.execute(f"SELECT * FROM {table}").fetchall() for table in ("session", "message", "part")]

    before = state()
    honest = new._said
    monkeypatch.setattr(new, "_said", lambda part, marks=b"": honest(part, marks).replace(b"changelog", b"change-log"))
    with pytest.raises(CutError):
        move(small(tmp_path), "opencode")
    assert state() == before


def test_words_that_the_other_client_takes_for_its_own_are_refused(homes: Path, tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.person("<task-notification>that is what it printed")
    rollout.agent("I see.")
    with pytest.raises(CutError, match=r"human “<task-notification>.*was read back as aside"):
        move(rollout.write(tmp_path), "claude-code")
    assert not list((homes / "claude").rglob("*.jsonl"))


# --------------------------------------------------------------------------------------------------- where it goes


def test_gemini_cli_s_folder_of_a_directory_is_the_one_that_it_has(homes: Path, tmp_path: Path) -> None:
    tmp = homes / ".gemini" / "tmp"
    here, there = tmp_path / "a" / "My Proj", tmp_path / "b" / "My Proj"
    for folder in (here, there):
        folder.mkdir(parents=True)
    placed = [
        move(made.small(cwd=str(folder)).write(tmp_path / f"{made.ID}.jsonl"), "gemini-cli")[1].path.parent
        for folder in (here, there, here)
    ]
    assert placed == [tmp / "my-proj" / "chats", tmp / "my-proj-1" / "chats", tmp / "my-proj" / "chats"]
    (tmp / "known").mkdir()
    (homes / ".gemini" / "projects.json").write_text(json.dumps({"projects": {str(there): "known"}}))
    source = made.small(cwd=str(there)).write(tmp_path / f"{made.ID}.jsonl")
    assert move(source, "gemini-cli")[1].path.parent == tmp / "known" / "chats"
    assert (tmp / "known" / ".project_root").read_text() == str(there)


def test_gemini_cli_takes_over_what_an_older_version_had(homes: Path, tmp_path: Path) -> None:
    """It does so once, and not where a newer folder holds something: a moved session must not be in the way."""
    here = tmp_path / "project"
    here.mkdir()
    old = homes / ".gemini" / "tmp" / hashlib.sha256(str(here).encode()).hexdigest()
    old.mkdir(parents=True)
    moved = move(made.small(cwd=str(here)).write(tmp_path / f"{made.ID}.jsonl"), "gemini-cli")[1]
    assert moved.path.parent == old / "chats" and moved.cwd == ""
    (listed,) = (one for one in sessions(here) if one.client == "gemini-cli")
    assert listed.file.id == moved.id


def test_opencode_s_session_goes_by_those_that_are_there(homes: Path, tmp_path: Path) -> None:
    moved = move(small(tmp_path), "opencode")[1]
    with closing(sqlite3.connect(moved.path)) as database:
        asked = "SELECT project_id, directory, title, version FROM session WHERE id = ?"
        assert database.execute(asked, (moved.id,)).fetchone() == ("global", made.CWD, moved.title, "1.18.33")
        rows = [
            json.loads(row[0]) for row in database.execute("SELECT data FROM message WHERE session_id = ?", (moved.id,))
        ]
    prompts = [row for row in rows if row["role"] == "user"]
    assert all(row["model"] == {"providerID": "scripted", "modelID": "m1"} for row in prompts)
    assert all(row["tokens"]["input"] == 0 for row in rows if row["role"] == "assistant")


def test_without_a_session_of_opencode_s_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("OPENCODE_DB", raising=False)
    source = open_path(small(tmp_path))
    done = plan(source, "opencode")
    with pytest.raises(InputError, match="give -o FILE, and import that"):
        execute(done)
    written: Written = execute(done, tmp_path / "moved.json")
    moved = open_path(written.path)
    assert said(moved) == said(source) and (moved.id, moved.cwd) == (written.id, made.CWD)
    with pytest.raises(InputError, match="is there already"):
        execute(done, tmp_path / "moved.json")


def test_pi_s_own_folder_is_honoured(homes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(tmp_path / "mine"))
    assert move(small(tmp_path), "pi")[1].path.parent == tmp_path / "mine"


def test_a_session_without_a_directory_goes_to_the_one_that_is_named(homes: Path, tmp_path: Path) -> None:
    pi = Pi()
    pi.human("Hello.")
    pi.agent("Hello!")
    path = pi.write(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"cwd"', b'"was"'))
    assert move(path, "claude-code")[1].cwd == "/somewhere"


# ---------------------------------------------------------------------------------------------- the command line


def environment(shell: Shell) -> dict[str, str]:  # noqa: F811
    return {"CODEX_HOME": str(shell.home / "codex")}


def test_the_command_says_what_goes_what_stays_and_how_to_go_on(shell: Shell) -> None:  # noqa: F811
    path = shell.session(checkpoint=True)
    before = path.read_bytes()
    done = shell("move", "--to", "codex", env=environment(shell))
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    (rollout,) = (shell.home / "codex").rglob("rollout-*.jsonl")
    id_ = rollout.stem[-36:]
    assert f"go on in Codex          codex resume {id_}" in text
    assert f"go back to the original claude --resume {made.ID}" in text and str(rollout) in text
    assert "Stays behind: 9 calls, 9 results, 4 thinking blocks." in text
    assert "was found again in what was written, in its order" in text
    assert path.read_bytes() == before
    listed = json.loads(shell("ls", "--json", env=environment(shell)).stdout)
    assert {entry["id"]: entry["title"] for entry in listed}[id_].endswith("(moved from Claude Code)")
    again = json.loads(shell("move", id_, "--to", "gemini", "--json", env=environment(shell)).stdout)
    assert again["resume"] == ["gemini", "--resume", again["copy"]["id"]] and again["client"] == "codex"


def test_the_figures_are_there_for_programs_and_a_dry_run_writes_nothing(shell: Shell) -> None:  # noqa: F811
    shell.session(checkpoint=True)
    told = json.loads(shell("move", "--to", "pi", "--json", "-n").stdout)
    assert told["copy"] is told["resume"] is None and not (shell.home / ".pi").exists()
    assert {key: row["number"] for key, row in told["moved"].items()} == {
        "agent_texts": 13,
        "human_texts": 3,
        "checkpoints": 1,
        "pairs": 0,
        "pictures": 0,
        "asides": 2,
    }
    assert told["left"] == {"calls": 9, "results": 9, "thinking": 4}
    assert told["directory"] == str(shell.project)
    assert b"Nothing was written." in shell("move", "--to", "pi", "-n", "--at", "last").stdout


def test_what_can_t_be_moved_is_one_line(shell: Shell) -> None:  # noqa: F811
    path = shell.session()
    fails(shell("move"), 2, "--to")
    fails(shell("move", "--to", "emacs"), 2, "emacs")
    fails(shell("move", "--to", "claude-code"), 2, "already", "cutline cut")
    fails(shell("move", "--to", "codex", "-o", "x.json"), 2, "-o is for opencode")
    fails(shell("move", "--to", "codex", "--at", "human:9"), 2, "human:9")
    (shell.project / "body.json").write_text('{"messages": []}')
    fails(shell("move", "body.json", "--to", "codex"), 2, "request body")
    (shell.home / ".codex").write_text("in the way")
    fails(shell("move", "--to", "codex"), 2, "can't be written")
    assert sorted(item.name for item in path.parent.iterdir()) == [path.name]


def test_a_failed_proof_is_exit_code_1_and_writes_nothing(shell: Shell) -> None:  # noqa: F811
    rollout = Rollout()
    rollout.person("<task-notification>that is what it printed")
    rollout.agent("I see.")
    path = rollout.write(shell.project)
    fails(shell("move", str(path), "--to", "claude-code"), 1, "rule 1 broken")
    assert not list((shell.home / ".claude").rglob("*.jsonl"))


# -------------------------------------------------------------------------------------------- recorded sessions


def recorded() -> list[Path]:
    """Every recorded session that can be read and cut, of whatever kind."""
    found = []
    for path in sorted((SHARED / "data" / "sessions").rglob("*")):
        if path.is_file() and "wire" not in path.parts:
            try:
                session = open_path(path)
                plan(session, next(to for to in TARGETS if to != session.client), cwd="/")
            except (InputError, ValueError):
                continue
            found.append(path)
    return found


def holds(source: Path, to: str, **options: Any) -> None:
    """Move a recorded session; the words are the same, and what it is cut to is what the other client reads."""
    session = open_path(source)
    if session.client == to:
        return
    try:
        done, moved = move(session, to, **options)
    except InputError as error:
        # The place that was asked for is in no such session, or behind a compaction that nobody reads.
        assert options and ("human turns" in str(error) or "compaction" in str(error)), error
        return
    except CutError as error:
        # A Markdown log of Claude Code's, whose notifications stand as a human's words.
        assert "specstory" in str(source) and to == "claude-code" and "<task-notification>" in str(error), error
        return
    assert said(moved) == said(session)
    assert {name for name, *_ in calls(moved)} <= {
        call.own or call.name for one in done.new.messages for call in one.calls()
    }


SOME = ("claude-code/ai-blame_9be0e4b5.jsonl", "claude-code/cipher-box_c644f3af_9images.jsonl")
SOME += ("codex/agentv_f4771ece_images.jsonl", "gemini-cli/entire-cli_gemini_513fab7adf.json")
SOME += ("opencode/nimbus_37364f83fa.json",)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded sessions are not on this machine: no ../shared/data")
@everywhere
@pytest.mark.parametrize("name", SOME)
def test_recorded_sessions_say_the_same_in_any_client(homes: Path, name: str, to: str) -> None:
    holds(SHARED / "data" / "sessions" / name, to)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded sessions are not on this machine: no ../shared/data")
@everywhere
@pytest.mark.parametrize("at", (None, "last", 0))
def test_every_recorded_session_says_the_same_in_any_client(homes: Path, to: str, at: Any) -> None:
    found = recorded()
    assert len(found) > 60
    for path in found:
        holds(path, to, **({} if at is None else {"at": at}))
