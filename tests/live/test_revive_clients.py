"""A revived copy in the real clients: it resumes, and the next request holds the words that a summary had replaced."""

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from cutline.sessions.clients import client as client_of
from cutline.sessions.clients import open_path
from cutline.sessions.codex import resume as codex_resume
from cutline.sessions.cutting import execute, prospect
from cutline.sessions.reviving import Revival, revive
from live import chat, gemini_cli, test_codex_resumes, test_copilot_cli_resumes
from live import test_gemini_cli_resumes as gemini_live
from live import test_opencode_resumes as opencode_live
from live import test_pi_resumes as pi_live
from live.chat import Answer
from live.codex import Answer as Items
from live.codex import Upstream, reasoning, said
from live.copilot_cli import Copilot
from live.gemini_cli import Home
from live.opencode import Opencode
from live.pi import Pi
from live.test_codex_resumes import Place, place, predicted, terminal  # noqa: F401
from live.test_copilot_cli_resumes import copilot  # noqa: F401
from live.test_gemini_cli_resumes import home  # noqa: F401
from live.test_opencode_resumes import older, opencode  # noqa: F401
from live.test_pi_resumes import pi  # noqa: F401
from test_revive_clients import originals, recorded

pytestmark = pytest.mark.slow

SUMMARY = "Counted so far, in other words."
needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded sessions are not on this machine")
places = pytest.mark.parametrize("at", (None, "end"), ids=("where it was compacted", "at its end"))


def write(session: Any, at: Any = None) -> tuple[Revival, str, Path]:
    """Write the revived copy; its id and its file."""
    done = revive(session)
    copy, _ = execute(prospect(done.session, at=done.place if at is None else at), mark="revived")
    return done, copy.id, copy.path


def in_order(texts: Iterable[str], heard: Iterable[tuple[str, str]]) -> None:
    """Every text stands on the wire, in this order."""
    wire = iter([words for _, words in heard])
    for text in texts:
        assert any(text.strip() in other for other in wire), f"not on the wire, or not in order: {text[:60]!r}"


def of(kind: str) -> list[Path]:
    return [path for path in recorded() if path.parent.name == kind]


# ------------------------------------------------------------------------------------------------------- Codex


@needs_data
@places
@pytest.mark.parametrize("source", of("codex"), ids=lambda path: path.stem)
def test_every_recorded_compaction_of_codex_is_undone_on_the_wire(place: Place, source: Path, at: Any) -> None:  # noqa: F811
    raw = source.read_bytes().replace(b'"model_provider":"openai"', b'"model_provider":"c"')
    old = json.loads(raw.split(b"\n")[0])["payload"]["id"]
    folder = place.home / "sessions" / "2026" / "01" / "02"
    folder.mkdir(parents=True)
    path = folder / f"rollout-2026-01-02T03-04-05-{old}.jsonl"
    path.write_bytes(raw)
    _, id_, copy = write(open_path(path), at)
    expected = list(predicted(copy))
    items = place.resume(id_, model=open_path(copy).history.model)
    sent = [entry for entry in test_codex_resumes.heard(items) if entry[0] != "reasoning"]
    # A call that nothing answered as the agent was stopped gets an output of the client's; what the provider carries
    # out itself is call and result in one, and has no id.
    open_ = {id_ for kind, id_ in expected if kind == "call"} ^ {id_ for kind, id_ in expected if kind == "output"}
    expected = [(kind, "" if kind == "call" and id_.isdecimal() else id_) for kind, id_ in expected]
    assert [entry for entry in sent if entry[0] != "output" or entry[1] not in open_] == [
        *(entry for entry in expected if entry[0] != "output" or not entry[1].isdecimal()),
        ("user", "And now?"),
    ]
    in_order((text for text in originals(path)[0] if not text.lstrip().startswith(("<", "# AGENTS.md"))), sent)
    assert not [item for item in items if item["type"].startswith(("compaction", "context_compaction"))]
    assert "Another language model started" not in json.dumps(items)


@pytest.mark.parametrize("manual", (False, True), ids=("automatic", "manual"))
def test_a_compaction_of_codex_s_own_making(place: Place, manual: bool) -> None:  # noqa: F811
    script: list[Items] = [
        [reasoning("U0VBTEVE", "Think."), said("I count."), test_codex_resumes.bash("call_count", "seq 1 40")],
        [said("It counts to 40.")],
    ]
    session = place.write(script, "Count.", input_tokens=(1_000, 1_000 if manual else 257_000))
    path = place.path(session)
    summed: list[Items] = [[reasoning("U1VN", "How do I put it?"), said(SUMMARY)]]
    if manual:
        compact(place, session, path, summed)
        summed = []
    more: list[Items] = [[said("I go on."), test_codex_resumes.bash("call_more", "seq 41 99")], [said("Done.")]]
    with Upstream([*summed, *more]) as upstream:
        assert place.client(upstream).run(place.cwd, "resume", session, "Go on.").code == 0
    assert "Another language model" in json.dumps(upstream.bodies[-1]), "it was compacted"
    before = path.read_bytes()
    done = place.cutline("revive", session, "--json", "--force")  # the count that is made up may look too large
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["window"]["tokens"] == 258_400 and told["summary_bytes"] > len(SUMMARY)
    sent = place.resume(told["copy"]["id"])
    assert [entry for entry in test_codex_resumes.heard(sent) if entry[0] != "reasoning"] == [
        ("user", "Count."),
        ("assistant", "I count."),
        ("assistant", "It counts to 40."),
        ("user", "Go on."),
        ("assistant", "I go on."),
        ("call", "call_more"),
        ("output", "call_more"),
        ("assistant", "Done."),
        ("user", "And now?"),
    ]
    assert "other words" not in json.dumps(sent) and "U1VN" not in json.dumps(sent)
    assert "other words" not in Path(told["copy"]["path"]).read_text("utf-8")
    assert path.read_bytes() == before


def compact(place: Place, session: str, path: Path, script: list[Items]) -> None:  # noqa: F811
    """Have a session compacted on a terminal, by the client's own command."""
    with Upstream(script) as upstream:
        client = place.client(upstream, "scripted")
        options = [option for option in client.options if option not in ("--skip-git-repo-check", "--json")]
        trust = ("-c", f'projects."{place.cwd}".trust_level="trusted"')
        command = [str(client.binary), *codex_resume(session)[1:], *options, *trust]
        with terminal(command, place.cwd, client.variables()) as tick:
            until = time.monotonic() + 90
            typed = time.monotonic() + 5
            letters = list("/compact")
            while b'"type":"compacted"' not in path.read_bytes() and time.monotonic() < until:
                tick()
                if time.monotonic() > typed:  # as by a hand: what comes all at once is taken for pasted
                    os.write(tick.handle, letters.pop(0).encode() if letters else b"\r")
                    typed = time.monotonic() + (0.1 if letters else 1)
    assert b'"type":"compacted"' in path.read_bytes()


# ---------------------------------------------------------------------------------------------------------- pi


@needs_data
@places
@pytest.mark.parametrize("source", of("pi"), ids=lambda path: path.stem)
def test_every_recorded_compaction_of_pi_is_undone_on_the_wire(pi: Pi, source: Path, at: Any) -> None:  # noqa: F811
    folder = pi.agent / "sessions" / "--recorded--"
    folder.mkdir(parents=True)
    head, rest = source.read_bytes().split(b"\n", 1)
    path = folder / source.name
    path.write_bytes(json.dumps({**json.loads(head), "cwd": str(pi.cwd)}).encode() + b"\n" + rest)
    _, _, copy = write(open_path(path), at)
    with chat.Upstream([Answer("Nothing more.")]) as upstream:
        pi.configure(upstream)
        options = ["--session", str(copy), "--provider", "scripted", "--model", chat.MODEL]
        outcome = pi.start([*pi.command, *options, "-p", "And now?"])
    assert (outcome.code, outcome.stdout) == (0, "Nothing more.\n"), outcome
    assert len(upstream.requests) == 1 and not upstream.faults
    sent = [message for message in upstream.requests[0]["messages"] if message["role"] in ("user", "assistant", "tool")]
    told = pi_live.heard(sent)
    before, summaries = originals(path)
    in_order(before, told)
    assert all(summary[:200] not in words for summary in summaries for _, words in told)
    messages = json.loads(open_path(copy).history.body)["messages"]
    made = [block["id"] for message in messages for block in message["content"] if block["type"] == "tool_use"]
    assert [words for kind, words in told if kind == "call"] == made


def test_a_compaction_of_pi_s_own_making(pi: Pi) -> None:  # noqa: F811
    script = [
        Answer(f"Step {number}.", [(f"c{number}", "bash", {"command": f"seq {number} 30000"})]) for number in range(6)
    ]
    path = pi_live.write(pi, [*script, Answer("The end.")], "Count.")
    pi_live.fill(path)
    pi_live.keep(pi, 6_000)
    with chat.Upstream(lambda body: Answer("Go on, then." if body.get("tools") else SUMMARY)) as upstream:
        assert pi.run(upstream, "And now?", "--continue").code == 0
    assert "in other words" in json.dumps(upstream.requests[-1])
    before = path.read_bytes()
    done = pi_live.cutline(pi, "revive", str(path), "--json", "--force")  # the full count makes it look too large
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    sent = pi_live.resume(pi, told["copy"]["id"])
    entries = pi_live.heard(sent)
    kept = [words for kind, words in entries if kind == "call"]
    assert kept and kept == [f"c{number}" for number in range(6 - len(kept), 6)], "what it kept stays whole"
    assert [words for kind, words in entries if kind in ("user", "assistant") and "[cutline]" not in words] == [
        "Count.",
        *(f"Step {number}." for number in range(6)),
        "The end.",
        "And now?",
        "Go on, then.",
        "And now?",
    ]
    assert "in other words" not in json.dumps(sent)
    assert "in other words" not in Path(told["copy"]["path"]).read_text("utf-8")
    assert path.read_bytes() == before


# ---------------------------------------------------------------------------------------------------- opencode


def compacted(opencode: Opencode) -> str:  # noqa: F811
    """A session of six steps that the client compacts and goes on with; its id."""
    script = [
        Answer(f"Step {number}.", [(f"c{number}", *opencode_live.bash(f"seq {number} 9000"))]) for number in range(6)
    ]
    opencode.settings["compaction"] = {"auto": True, "preserve_recent_tokens": 12_000}
    with opencode_live.provider([*script, Answer("The end.")]) as upstream:
        upstream.full = len(script) + 1
        upstream.aside = "A title"
        assert opencode.run(upstream, "Count.").code == 0
        assert opencode.run(upstream, "And then?", "--continue").code == 0
    return opencode_live.newest(opencode)


def undone(opencode: Opencode, session: str) -> list[tuple[str, str]]:  # noqa: F811
    """What is sent of the revived copy of a session."""
    told = json.loads(opencode_live.cutline(opencode, "revive", session, "--json"))
    sent = opencode_live.resume(opencode, told["copy"]["id"])
    assert told["compactions"][0]["trigger"] == "auto"
    # The summary is answered as the title was; the client's own questions about it are not sent either.
    assert "A title" not in json.dumps(sent) and "What did we do so far" not in json.dumps(sent)
    return [entry for entry in opencode_live.heard(sent) if "[cutline]" not in entry[1]]


def test_a_compaction_of_opencode_s_own_making(opencode: Opencode) -> None:  # noqa: F811
    session = compacted(opencode)
    whole = opencode_live.heard(opencode_live.resume(opencode, session))
    assert ("assistant", "A title") in whole and ("assistant", "Step 0.") not in whole
    tail = [words for kind, words in whole if kind == "call"]
    before = opencode_live.rows(opencode, session)
    heard = undone(opencode, session)
    assert [words for kind, words in heard if kind == "assistant"] == [
        *(f"Step {number}." for number in range(6)),
        "The end.",
        "ok",
        "ok",
        "Nothing more.",
    ]
    assert [words for kind, words in heard if kind == "call"] == tail, "what it kept stays whole"
    assert heard[0] == ("user", "Count.") and heard[-1] == ("user", '"And now?"')
    assert opencode_live.rows(opencode, session) == before


class Refusing(chat.Upstream):
    """A provider that takes one request for too large."""

    refuses = 0

    def _take(self, body: dict[str, Any]) -> tuple[int, bytes]:
        if body.get("tools") and len(self.requests) + 1 == self.refuses:
            self.requests.append(body)
            told = {
                "message": "This model's maximum context length is 200000 tokens.",
                "code": "context_length_exceeded",
            }
            return 400, json.dumps({"error": {**told, "type": "invalid_request_error"}}).encode()
        return super()._take(body)


def test_words_that_opencode_writes_again_behind_a_summary_are_sent_once(opencode: Opencode) -> None:  # noqa: F811
    script = [
        Answer("Step 1.", [("c1", *opencode_live.bash("seq 1 90"))]),
        Answer("One."),
        Answer("never given"),
        Answer("Step 2.", [("c2", *opencode_live.bash("seq 2 90"))]),
        Answer("Two."),
    ]
    with Refusing(script) as upstream:
        upstream.aside, upstream.refuses = "A title", 3
        assert opencode.run(upstream, "Count.").code == 0
        assert "Two." in opencode.run(upstream, "And more.", "--continue").stdout
    heard = undone(opencode, opencode_live.newest(opencode))
    assert heard == [
        ("user", "Count."),
        ("assistant", "Step 1."),
        ("assistant", "One."),
        ("user", '"And more."'),
        ("assistant", "Step 2."),
        ("call", "c2"),
        ("tool", "c2"),
        ("assistant", "Two."),
        ("user", '"And now?"'),
    ]


def test_a_compaction_in_the_files_of_an_older_opencode(older: Opencode) -> None:  # noqa: F811
    session = compacted(older)
    storage = older.data / "storage"
    before = {path: path.read_bytes() for path in storage.rglob("*.json") if session in str(path)}
    heard = undone(older, session)
    assert [words for kind, words in heard if kind == "assistant"][:7] == [
        *(f"Step {number}." for number in range(6)),
        "The end.",
    ]
    assert heard[0] == ("user", "Count.") and all(path.read_bytes() == data for path, data in before.items())


# ------------------------------------------------------------------------------------------ Copilot CLI, Gemini CLI


def test_a_compaction_of_copilot_cli_s_own_making(copilot: Copilot) -> None:  # noqa: F811
    work = test_copilot_cli_resumes.WORK
    path = test_copilot_cli_resumes.write(copilot, [*work[:2], Answer("Done.")], "Count.")
    with chat.Upstream(lambda _: Answer(SUMMARY)) as upstream:
        assert copilot.run(upstream, "--continue", "-p", "/compact").code == 0
    again = test_copilot_cli_resumes.bash("c2", "seq 41 99")
    with chat.Upstream([Answer("Once more.", [again]), Answer("The end.")]) as upstream:
        assert copilot.run(upstream, "--continue", "-p", "Go on.").code == 0
    assert "in other words" in json.dumps(upstream.requests[0])
    before = path.read_bytes()
    done, id_, copy = write(open_path(path))
    assert done.compactions[0].trigger == "manual" and done.window.tokens == 128_000
    sent = test_copilot_cli_resumes.resume(copilot, id_)
    assert [entry for entry in test_copilot_cli_resumes.heard(sent) if "[cutline]" not in entry[1]] == [
        ("user", "Count."),
        ("assistant", work[0].text),
        ("assistant", work[1].text),
        ("assistant", "Done."),
        ("user", "Go on."),
        ("assistant", "Once more."),
        ("call", "c2"),
        ("tool", "c2"),
        ("assistant", "The end."),
        ("user", "And now?"),
    ]
    assert "in other words" not in json.dumps(sent)
    written = [file.read_bytes() for file in copy.parent.rglob("*") if file.is_file()]
    assert not any(b"in other words" in data for data in written)
    assert path.read_bytes() == before


class Compressing(gemini_cli.Upstream):
    """A provider that answers requests without tools, by which the client compresses, with a summary."""

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """What a request gets."""
        found = super().answer(path, body)
        if "candidates" in found and not body.get("tools"):
            found["candidates"][0]["content"]["parts"] = [{"text": f"<state_snapshot>{SUMMARY}</state_snapshot>"}]
        return found


def test_a_compression_of_gemini_cli_s_own_making(home: Home) -> None:  # noqa: F811
    steps = [
        ("Step 1.", "seq 11 4000", "One."),
        ("Step 2.", "seq 22 4000", "Two."),
        ("Step 3.", "seq 33 400", "Three."),
    ]
    prompts = ("Count.", "Go on.", "Again.")
    for number, ((words, command, end), prompt) in enumerate(zip(steps, prompts, strict=True)):
        home.settle(model={"compressionThreshold": 0.0001} if number == 2 else {})
        script = [gemini_live.run([gemini_cli.text(words)], command), [gemini_cli.text(end)]]
        with Compressing(script) as upstream:
            options = ("--resume", "latest") if number else ()
            assert home.run(upstream.url, prompt, *options).code == 0
    home.settle()
    assert "in other words" in json.dumps(upstream.conversation[0]) and "Step 1." not in json.dumps(
        upstream.conversation
    )
    path = home.session()
    before = path.read_bytes()
    _, id_, copy = write(client_of("gemini-cli").open_session(path))
    sent, faults = gemini_live.resume(home, id_, "And now?")
    assert faults == []
    assert [entry for entry in gemini_live.heard(sent) if "[cutline]" not in entry[1]] == [
        ("user", "Count."),
        ("model", "Step 1."),
        ("model", "One."),
        ("user", "Go on."),
        ("model", "Step 2."),
        ("model", "Two."),
        ("user", "Again."),
        ("model", "Step 3."),
        ("model", "functionCall run_shell_command"),
        ("user", "functionResponse run_shell_command"),
        ("model", "Three."),
        ("user", "And now?"),
    ]
    assert "in other words" not in json.dumps(sent) and path.read_bytes() == before
    assert "in other words" not in copy.read_text("utf-8")
