"""`cutline recall`: by words, tool, author and time; the evidence beside a result; a command run again."""

# ruff: noqa: F811 (fixtures are imported)

import dataclasses
import json
import os
import re
import time
from pathlib import Path

import pytest

import bodies
import made
import providers
from cutline import recall
from cutline.record import Document
from test_record import call, exchange, result
from test_record_command import Home, home, on_a_terminal  # noqa: F401

NOW = time.time()


def history(*steps: tuple[str, str], tool: str = "Bash", **arguments) -> bytes:
    """Words, a command and its result for each step."""
    messages: list[dict] = [{"role": "user", "content": "Find the lost row, in the importer."}]
    for number, (command, answer) in enumerate(steps):
        made_ = call(f"toolu_{number}", command, tool)
        made_["input"].update(arguments)
        error = {"is_error": True} if answer.startswith("Exit code") else {}
        messages += [
            {
                "role": "assistant",
                "content": [{"type": "text", "text": f"Step {number}: the bound is suspected."}, made_],
            },
            {"role": "user", "content": [result(f"toolu_{number}", answer, **error)]},
        ]
    return bodies.body(messages)


def keep(home: Home, *steps: tuple[str, str], at: float = NOW, session: str = "s1", **values) -> str:
    """Record a history; returns the address of its newest call."""
    project = values.pop("project", str(home.project))
    with home.record() as store:
        store.write(exchange(history(*steps, **values), session, project=project, at=at))
        return store.search(project, [])[0].found.call.address


# ------------------------------------------------------------------------------------------------------------ looking


def test_calls_are_found_by_tool_and_time(home: Home):
    keep(home, ("ls", "a.py"), at=NOW - 3 * 86_400)
    keep(home, ("ls", "a.py"), at=NOW - 3_600, session="s2", tool="mcp__box__shell")
    assert [hit["tool"] for hit in home.json("recall", "a.py")] == ["Bash", "mcp__box__shell"]
    assert [hit["tool"] for hit in home.json("recall", "--tool", "shell")] == ["mcp__box__shell"]
    assert [hit["session"] for hit in home.json("recall", "ls", "--since", "2d")] == ["s2"]
    assert len(home.json("recall", "ls", "--since", "2020-01-01")) == 2
    home.fails(2, ("recall", "ls", "--since", "30min"), "nothing with the words “ls”")
    home.fails(2, ("recall", "ls", "--since", "yesterday"), "2d", "2026-11-30")
    home.fails(2, ("recall",), "give an address, or words")
    assert "1 h ago" in home("recall", "--tool", "shell")


def test_what_was_said_is_found_by_its_author(home: Home):
    keep(home, ("ls", "a.py"), ("cat a.py", "range(9)"))
    found = home.json("recall", "--author", "agent", "BOUND", "suspected")
    assert [(one["text"], one["message"], one["session"], one["author"]) for one in found] == [
        ("Step 0: the bound is suspected.", 1, "s1", "agent"),
        ("Step 1: the bound is suspected.", 3, "s1", "agent"),
    ]
    assert found[0]["at"] and found[0]["project"] == str(home.project)
    assert "Find the lost row" in home("recall", "--author", "human") and "s1" in home.out
    home.fails(2, ("recall", "--author", "human", "suspected"), "nothing with the words")
    home.fails(2, ("recall", "--author", "agent", "--tool", "Bash"), "--tool goes with")
    home.fails(2, ("recall", "suspected"), "--author agent")


def test_session_files_are_searched_alike_where_nothing_is_recorded(home: Home):
    home.session()
    texts = home.json("recall", "--author", "agent", "31 passed in each")
    assert [one["session"] for one in texts] == [made.ID] and texts[0]["at"].startswith("2026-10-05T09:")
    assert len(home.json("recall", "--author", "human")) == 3
    assert len(home.json("recall", "--tool", "bash", "pytest")) == 4
    assert len(home.json("recall", "--session", made.ID, "--author", "human", "fixtures")) == 1
    home.fails(2, ("recall", "pytest", "--since", "2100-01-01"), "nothing with the words")


def test_a_session_that_can_not_be_read_hides_no_other_and_is_named(home: Home):
    """A call without an id, as some programs write sessions: the file opens, its history is refused."""
    path = home.session()
    whole = path.read_text()
    odd = home.session(id="ffffffff-aaaa-4bbb-8ccc-dddddddddddd")
    odd.write_text(re.sub(r'"id": ?"toolu_[^"]*", ?', "", odd.read_text()))
    assert odd.read_text() != whole and home.json("recall", "CHANGELOG")
    address = home.json("recall", "CHANGELOG")[0]["address"]
    assert "CHANGELOG" in home("recall", address) and home.json("recall", "--author", "human", "fixtures")
    home.fails(2, ("recall", "--session", str(odd), "ls"), str(odd), "without id or name", "give another")
    home("record", "import", str(home.folder))
    assert f"not taken in: {odd}: a tool_use block without id" in " ".join(home.err.split())
    assert home.json("record", "stats")["sessions"] == 1


@pytest.mark.parametrize("way", ("anthropic", "converse", "gemini", "openai_chat", "openai_responses"))
def test_a_body_of_any_format_that_is_named_is_looked_through_under_the_records_addresses(home: Home, way: str):
    body = providers.growing(way)[-1]
    (home.project / "body.json").write_bytes(body)
    with home.record() as store:
        store.write(exchange(body, project=str(home.project)))
    found = home.json("recall", "--session", "body.json", "row_", "part_02.py")
    assert [hit["address"] for hit in found] == [hit["address"] for hit in home.json("recall", "row_", "part_02.py")]
    assert home("recall", found[0]["address"], "--raw", "-s", "body.json").startswith("row_0 = 0")
    assert home.json("recall", "-s", "body.json", "--author", "human", "all parts agree")


def test_it_stays_in_the_project_unless_it_is_told_otherwise(home: Home):
    address = keep(home, ("ls", "a.py"), project="/elsewhere")
    home.fails(2, ("recall", address), "nothing at the address", "--everywhere")
    home.fails(2, ("recall", "a.py"), "--everywhere")
    assert home.json("recall", address, "--everywhere")["directory"] == "/elsewhere"
    assert [hit["project"] for hit in home.json("recall", "a.py", "--everywhere")] == ["/elsewhere"]
    assert len(home.json("recall", "--everywhere", "--author", "human", "lost row")) == 1


@pytest.mark.parametrize(
    "words", ("a OR b", '"', "NEAR(", "*", "text:x", "../../etc/passwd", "\x1b[2J", "0123456789abcdeX", "-")
)
def test_odd_words_are_only_words(home: Home, words: str):
    keep(home, ("ls", "a.py"))
    home.fails(2, ("recall", "--", words), "nothing with the words")
    home.fails(2, ("recall", "--author", "agent", "--", words), "nothing with the words")


def test_operators_stand_for_themselves(home: Home):
    keep(home, ("grep 'a OR b' x.sql", 'col: "NEAR(" * ^'))
    for words in ("a OR b", '"NEAR("', "col:", "^"):
        assert len(home.json("recall", words)) == 1


# ----------------------------------------------------------------------------------------------------------- evidence


def test_the_evidence_stands_beside_the_result(home: Home):
    address = keep(home, ("pytest -q\nls", "Exit code 1\n1 failed"), timeout=9_000, at=NOW - 7_200)
    stamp = {"head": "abc1234", "branch": "main", "directory": str(home.project)}
    document = Document("s1", str(home.project), NOW - 7_200 + 250, "", "{}", json.dumps(stamp), "[]")
    with home.record() as store:
        store.put_document(document)
        store.put_document(dataclasses.replace(document, at=NOW, stamp='{"head":"fff0000"}'))
        store.put_document(dataclasses.replace(document, at=NOW - 7_200, session="s2", stamp='{"head":"eee0000"}'))
    told = home("recall", address)
    for words in ("exit code 1", "2 h ago", f"in {home.project}; git main at abc1234, stamped 4 min later", "timeout  9000",
                  "command  pytest -q\n           ls", "an error", "\n\nExit code 1\n1 failed\n"):  # fmt: skip
        assert words in told, told
    found = home.json("recall", address)
    assert (found["exit_code"], found["directory"], found["git"]["head"]) == (1, str(home.project), "abc1234")
    assert home("recall", address, "--raw") == "Exit code 1\n1 failed"
    home.fails(2, ("recall", "failed", "--raw"), "needs one address")


def test_what_is_not_known_is_not_shown(home: Home):
    address = keep(home, ("ls", "a.py"))
    with home.record() as store:  # a day before: nobody knows what was checked out
        store.put_document(Document("s1", str(home.project), NOW - 86_400, "", "{}", '{"head":"abc1234"}', "[]"))
    told = home("recall", address)
    assert "exit code" not in told and "git" not in told
    found = home.json("recall", address)
    assert found["exit_code"] is None and found["git"] is None


def test_a_session_of_the_client_gives_the_same_evidence(home: Home):
    home.session()
    address = home.json("recall", "CHANGELOG")[0]["address"]
    found = home.json("recall", address)
    assert found["directory"] == str(home.project) and found["at"].startswith("2026-10-05T09:")


# ----------------------------------------------------------------------------------------------------------- run again


def test_a_command_run_again_gives_the_same_or_a_difference(home: Home):
    (home.project / "a.txt").write_text("one\ntwo\nthree\n")
    address = keep(home, ("cat a.txt  # here", "one\ntwo\nthree"))
    assert "the same as recorded: exit code 0" in home("recall", "--rerun", address, "--yes") and home.code == 0
    (home.project / "a.txt").write_text("one\n2\nthree\n")
    told = home("recall", "--rerun", address, "--yes")
    assert home.code == 1 and "-two\n+2\n" in told and "not what was recorded" in told
    found = home.json("recall", "--rerun", address, "--yes")
    assert home.code == 1 and found["same"] is False and "+2" in found["difference"] and found["exit_code"] == 0


def test_exit_codes_count(home: Home):
    failed = keep(home, ("echo no; exit 3", "Exit code 3\nno"))
    assert "exit code 3" in home("recall", "--rerun", failed, "--yes") and home.code == 0
    fine = keep(home, ("echo no; exit 4", "no"), session="s2")
    told = home("recall", "--rerun", fine, "--yes")
    assert home.code == 1 and "exit code 4; it was 0" in told


def test_nothing_runs_without_consent(home: Home):
    hidden = "touch ran\x1b[2K\x1b[1A # \u202elooks harmless"
    address = keep(home, (hidden, "x"))
    home.fails(2, ("recall", "--rerun", address), "needs consent", "--yes")
    code, seen = on_a_terminal(home, ["recall", "--rerun", address], b"\n")
    assert code == 130 and not (home.project / "ran").exists()
    assert "touch ran\\x1b[2K\\x1b[1A # \\u202elooks harmless" in seen and str(home.project) in seen
    code, seen = on_a_terminal(home, ["recall", "--rerun", address], b"y\n")
    assert code == 1 and "-x" in seen and len(list(home.project.glob("ran*"))) == 1
    home.fails(2, ("recall", address, "--yes"), "--yes goes with --rerun")
    home.fails(2, ("recall", "touch", "--rerun"), "needs one address")


@pytest.mark.parametrize(
    ("values", "said"),
    (
        ({"tool": "Read"}, "only shell commands"),
        ({"tool": "mcp__db__query"}, "only shell commands"),
        ({"run_in_background": True}, "ran in the background"),
        ({"project": "/nowhere/at/all"}, "which is gone"),
        ({"command": ["ls", 3]}, "no list of words"),
        ({"command": "ls\0"}, "NUL"),
        ({"command": "sleep 30", "timeout": 100}, "longer than 0.1 s"),
    ),
)
def test_what_cannot_be_run_again_is_said(home: Home, values: dict, said: str):
    address = keep(home, ("ls", "a.py"), **values)
    home.fails(2, ("recall", "--everywhere", "--rerun", address, "--yes"), said)


def test_a_command_that_is_ended_takes_its_children_with_it(home: Home):
    address = keep(home, ("(sleep 0.6; touch late) & sleep 30", "x"), timeout=200)
    home.fails(2, ("recall", "--rerun", address, "--yes"), "was ended")
    time.sleep(0.8)
    assert not (home.project / "late").exists()


def test_what_a_client_adds_is_no_difference(home: Home):
    address = keep(
        home, ("printf 'a  \\r\\nb\\n\\n'", "a\nb\n\n<system-reminder>\nMind the tests.\n</system-reminder>")
    )
    home("recall", "--rerun", address, "--yes")
    assert home.code == 0, home.out
    cut = keep(home, ("printf 'a\\nb\\n'", "a\n... [12,345 characters truncated] ..."), session="s2")
    assert "shortened the recorded result" in home("recall", "--rerun", cut, "--yes") and home.code == 1


def test_a_list_of_words_goes_to_no_shell(home: Home):
    address = keep(home, ("x", "$HOME"), command=["echo", "$HOME"], tool="shell")
    home("recall", "--rerun", address, "--yes")
    assert home.code == 0, home.out


# ------------------------------------------------------------------------------------------------------ on a terminal


def test_a_terminal_is_never_steered_by_what_is_recorded(home: Home):
    """A result on a terminal shows its escapes; through a pipe it is exact."""
    address = keep(home, ("cat \x1b[31m", "red \x1b[31mtext\x07"))
    assert home("recall", address, "--raw") == "red \x1b[31mtext\x07"
    assert "\x1b" not in home("recall", "cat") and "\x1b" not in home("recall", "--author", "human")
    assert "\x1b" not in home("recall", address).split("\n\n")[0]
    import pty
    import subprocess
    import sys

    leader, follower = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home.home), "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-c", "from cutline.cli import main; main()", "recall", address]
    subprocess.run(command, cwd=home.project, env=environment, stdout=follower, check=True)
    os.close(follower)
    seen = os.read(leader, 65_536).decode()
    os.close(leader)
    assert "red \\x1b[31mtext\\x07" in seen and "\x1b" not in seen


def test_when_says_one_unit():
    told = [recall.when(0.0, now).split(", ")[1] for now in (5.0, 400.0, 20_000.0, 400_000.0)]
    assert told == ["5 s ago", "7 min ago", "6 h ago", "5 d ago"]


def test_two_commands_at_once_read_one_record(home: Home, tmp_path: Path):
    address = keep(home, ("ls", "a.py"))
    with home.record() as writing:
        writing.write(exchange(history(("ls", "b.py")), "s2", project=str(home.project)))
        assert home.json("recall", address)["result"] in ("a.py", "b.py")
        assert len(home.json("recall", "ls")) == 2
