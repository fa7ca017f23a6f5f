"""A revived copy in the real client: it resumes, and the next request holds the words that a summary had replaced."""

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from cutline.sessions.claude_code import open_session
from cutline.sessions.cutting import execute, prospect
from cutline.sessions.reviving import revive
from live import claude
from live.test_claude_code_resumes import _ANSWER, Place, assert_pairs, compare, heard, place  # noqa: F401
from live.upstream import Block, Upstream, call, text
from test_revive import compacted_files, walked

pytestmark = pytest.mark.slow


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded sessions are not on this machine: no ../shared/data")
@pytest.mark.parametrize("at", (None, "end"), ids=("where it was compacted", "at its end"))
@pytest.mark.parametrize("source", compacted_files(), ids=lambda path: path.stem[:30])
def test_every_recorded_compaction_is_undone_on_the_wire(place: Place, source: Path, at: str | None) -> None:  # noqa: F811
    place.folder.mkdir(parents=True, exist_ok=True)
    path = place.path(str(uuid.uuid4()))
    shutil.copyfile(source, path)
    words, summaries = walked(path)
    done = revive(open_session(path))
    written, _ = execute(prospect(done.session, at=done.place if at is None else at), mark="revived")
    copy = open_session(written.path)
    sent = place.resume(written.id, "And now?", f"{copy.history.model}[1m]")
    compare(copy, sent, "And now?")
    # A text may come with one line's end more; what is typed while the agent works stands inside the client's frame.
    wire = iter(said for _, kind, said in heard(sent) if kind == "text")
    for said in words:
        assert any(said.strip() in other for other in wire), f"not on the wire, or not in order: {said[:60]!r}"
    body = json.dumps(sent, ensure_ascii=False)
    assert all(json.dumps(summary, ensure_ascii=False)[1:200] not in body for summary in summaries)


@pytest.mark.parametrize("manual", (False, True), ids=("automatic", "and a manual one behind it"))
def test_compactions_of_the_client_s_own_making(place: Place, manual: bool) -> None:  # noqa: F811
    """It keeps its last messages through them: they come once, in their place, whole."""
    turns = 0

    def answer(body: dict[str, Any]) -> list[Block]:
        nonlocal turns
        turns += 1
        if "<summary>" in json.dumps(body["messages"][-1]):
            upstream.input_tokens = 3_000
            return [text("<summary>Counted so far, in other words.</summary>")]
        upstream.input_tokens = 12_000 if turns > 4 else 20_000 * turns
        return (
            [text(f"Step {turns}."), call(f"toolu_{turns}", "Bash", command=f"seq {turns} 90")]
            if turns < 8
            else [text("The end.")]
        )

    with Upstream(answer) as upstream:
        automatic = {"DISABLE_AUTO_COMPACT": "", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}
        client = claude.Claude(claude.install(), upstream.url, environment=automatic)
        session = client.run("Count.", place.cwd, place.config).result["session_id"]
        if manual:
            assert client.resume(session, "/compact", place.cwd, place.config).code == 0
    path = place.path(session)
    before = path.read_bytes()
    assert before.count(b'"isCompactSummary":true') == (2 if manual else 1)

    compacted = place.resume(session, "And now?")
    assert "in other words" in json.dumps(compacted) and "Step 1." not in json.dumps(compacted)
    path.write_bytes(before)

    done = place.cutline("revive", session, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    sent = place.resume(told["copy"]["id"], "And now?")
    # Where /compact comes last, 2.1.197 answers it in the agent's place, in the original as in the copy.
    kinds = [entry for entry in heard(sent) if not entry[2].startswith(("[cutline]", "<", _ANSWER))]
    whole = () if manual else (4, 6, 7)  # the call before the automatic one was kept, and what came behind it
    assert kinds == [
        ("user", "text", "Count."),
        *(
            entry
            for n in (1, 2, 3, 4, 6, 7)
            for entry in (
                ("assistant", "text", f"Step {n}."),
                *(
                    [("assistant", "tool_use", f"toolu_{n}"), ("user", "tool_result", f"toolu_{n}")]
                    if n in whole
                    else []
                ),
            )
        ),
        ("assistant", "text", "The end."),
        ("user", "text", "And now?"),
    ]
    assert "in other words" not in json.dumps(sent)
    assert_pairs(sent)
    assert path.read_bytes() == before
