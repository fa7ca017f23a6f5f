"""Cut copies of session files: links, damage, compaction, and what happens when a write goes wrong."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import made
from conftest import SHARED, claude_code_files, smaller, tried
from cutline.errors import InputError, NothingToCut
from cutline.sessions.claude_code import open_session
from cutline.sessions.cutting import execute, prospect

BUGS = SHARED / "bugs"
reported = pytest.mark.skipif(not BUGS.is_dir(), reason="../shared/bugs is not on this machine")


def case(number: str, folder: Path) -> Path:
    source = next(BUGS.glob(f"{number}-*.jsonl"))
    path = folder / source.name
    path.write_bytes(source.read_bytes())
    return path


def cut(path: Path, **options):
    wanted = prospect(open_session(path), **options)
    return wanted, execute(wanted)[0]


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@reported
def test_29_links_lead_past_what_left(tmp_path: Path):
    path = case("29", tmp_path)
    source = path.read_bytes()
    _, copy = cut(path)
    uuid = "0000001d-0000-4000-8000-0000000000"
    kept = {record["uuid"]: record for record in records(copy.path) if "uuid" in record}
    assert [key[-2:] for key in kept] == ["01", "03", "07", "0a", "0b", "0c", "0d", "0e"]
    assert kept[uuid + "07"]["parentUuid"] == uuid + "03"
    assert kept[uuid + "03"]["parentUuid"] == uuid + "01"
    assert kept[uuid + "0a"]["parentUuid"] == uuid + "07"
    assert path.read_bytes() == source
    # From the leaf back, every record is reached.
    at, seen = next(r for r in records(copy.path) if r["type"] == "last-prompt")["leafUuid"], []
    while at is not None:
        seen.append(at)
        at = kept[at]["parentUuid"]
    assert set(seen) == set(kept)
    # From the checkpoint's first record on, bytes are as they were but for the id, one link and the notice.
    old = source.decode().splitlines()
    new = copy.path.read_text("utf-8").splitlines()
    for number in ("0b", "0d", "0e"):
        before = next(line for line in old if f'"uuid":"{uuid}{number}"' in line)
        after = next(line for line in new if f'"uuid":"{uuid}{number}"' in line)
        assert after == before.replace("5e55a0f1-0000-4000-8000-000000000029", copy.id)
    assert {record["sessionId"] for record in records(copy.path) if "sessionId" in record} == {copy.id}
    assert [r["type"] for r in records(copy.path)].count("custom-title") == 1
    assert any(record["type"] == "file-history-snapshot" for record in records(copy.path))
    result = kept[uuid + "0c"]
    assert "[cutline]" in result["message"]["content"][0]["content"]
    assert "[cutline]" not in json.dumps(result["toolUseResult"])


@reported
def test_30_glued_and_torn_records(tmp_path: Path):
    path = case("30", tmp_path)
    session = open_session(path)
    assert session.log.glued == (2,) and [torn.line for torn in session.log.torn] == [4, 9]
    _, copy = cut(path)
    texts = json.dumps(records(copy.path))
    for words in ("Sort the stamp album", "Listing the album.", "Two watermarks", "Crown first.", "crown, anchor"):
        assert words in texts
    assert "toolu_s1" not in texts.replace("[cutline]", "").split("customTitle")[0].split("Calls ")[0]
    assert copy.path.read_bytes().endswith(b"}\n")
    with pytest.raises(NothingToCut, match="left to cut"):
        prospect(open_session(copy.path))


@reported
def test_32_what_stands_before_a_compaction_is_left_alone(tmp_path: Path):
    path = case("32", tmp_path)
    wanted, copy = cut(path)
    assert sorted(removed.why for removed in wanted.done.removed) == ["call", "result", "thinking"]
    before, after = records(path), records(copy.path)
    for old, new in zip(before[:4], after[:4]):
        assert {**old, "sessionId": copy.id} == new
    boundary = next(record for record in after if record.get("subtype") == "compact_boundary")
    assert boundary["parentUuid"] is None and boundary["logicalParentUuid"].endswith("4")
    assert any(record.get("isCompactSummary") for record in after)
    texts = json.dumps(after)
    assert "Carry on with sheet 2." in texts and "Opening sheet 2." in texts and "toolu_b0" in texts
    assert "SIGb1" not in texts and "LINE 0 0" not in json.dumps([r for r in after if not r.get("toolUseResult")])
    assert any(record.get("subtype") == "turn_duration" for record in after)


def test_a_copy_is_private_and_lies_beside_the_real_file(tmp_path: Path):
    real = made.small().write(tmp_path / "real.jsonl")
    real.chmod(0o644)
    link = tmp_path / "session.jsonl"
    link.symlink_to("real.jsonl")
    before = real.read_bytes(), real.stat().st_mtime_ns
    old = os.umask(0)
    try:
        _, copy = cut(link)
    finally:
        os.umask(old)
    assert stat.S_IMODE(copy.path.stat().st_mode) == 0o600
    assert copy.path.parent == real.parent and link.is_symlink()
    assert (real.read_bytes(), real.stat().st_mtime_ns) == before and stat.S_IMODE(real.stat().st_mode) == 0o644


def test_a_session_that_grows_meanwhile_is_copied_as_it_was_and_says_so(tmp_path: Path):
    session = made.small()
    path = session.write(tmp_path / f"{made.ID}.jsonl")
    wanted = prospect(open_session(path))
    with path.open("a") as handle:
        handle.write(
            json.dumps({**session.records[-1], "uuid": "late", "message": {"role": "user", "content": "late"}}) + "\n"
        )
    copy, _ = execute(wanted)
    assert copy.missed > 100
    assert '"late"' not in copy.path.read_text("utf-8")


CODE = "from cutline.cli import main; main()"


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path):
    path = made.small().write(tmp_path / f"{made.ID}.jsonl")
    small = path.stat().st_size // 8
    done = subprocess.run(
        [sys.executable, "-c", CODE, "cut", str(path)],
        env={**os.environ, "HOME": str(tmp_path), "NO_COLOR": "1"},
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (small, small)),
    )
    text = done.stderr.decode()
    assert done.returncode == 2 and "can't be written" in text and text.count("\n") == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_kill_at_any_moment_leaves_no_half_copy_and_the_next_run_clears_up(tmp_path: Path):
    session = made.small()
    for number in range(60):
        session.step(f"Step {number}: looking again, because 3 fail.", f"run {number}", "out " * 20_000)
    session.human("And now?")
    session.agent({"type": "text", "text": "Now it is done."})
    path = session.write(tmp_path / f"{made.ID}.jsonl")
    source = path.read_bytes()
    environment = {**os.environ, "HOME": str(tmp_path), "NO_COLOR": "1"}
    left_over = 0
    for extra in (0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08):
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, "cut", str(path)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and not list(tmp_path.glob(".*.cutline-tmp")):
            time.sleep(0.0005)
        time.sleep(extra)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for entry in tmp_path.iterdir():
            if entry != path and entry.suffix == ".jsonl":
                open_session(entry)  # a copy that has its name is whole
                entry.unlink()
            elif entry != path:
                left_over += 1
                assert stat.S_IMODE(entry.stat().st_mode) == 0o600 and not entry.name.endswith(".jsonl")
    assert path.read_bytes() == source
    assert (
        subprocess.run([sys.executable, "-c", CODE, "cut", str(path)], env=environment, capture_output=True).returncode
        == 0
    )
    assert not list(tmp_path.glob(".*.cutline-tmp"))
    assert left_over, "no kill fell into a write: the test tested nothing"


@pytest.mark.skipif(not claude_code_files(), reason="../shared/data is not on this machine")
@pytest.mark.parametrize(
    ("at", "files", "least"),
    [
        *tried("smaller", smaller(claude_code_files()), {None: 5}),
        *tried("all", claude_code_files(), {None: 12, "last": 12, "end": 12, "human:2": 12}, pytest.mark.slow),
    ],
)
def test_every_recorded_session_is_copied_and_proven(tmp_path: Path, at: str | None, files: list[Path], least: int):
    copied = 0
    for source in files:
        path = tmp_path / source.name
        path.write_bytes(source.read_bytes())
        try:
            copy, proof = execute(prospect(open_session(path), at=at))
        except (InputError, NothingToCut):
            continue
        copied += 1
        assert not proof.unchanged
        assert path.read_bytes() == source.read_bytes()
        known = {record["uuid"] for record in records(copy.path) if record.get("uuid")}
        new = [r for r in records(copy.path) if r.get("parentUuid") and r["parentUuid"] not in known]
        old = {record.parent for record in open_session(path).log.records}
        assert all(record["parentUuid"] in old for record in new), "no link is made to a record that is not there"
        copy.path.unlink()
    assert copied >= least


def test_a_client_s_own_copies_of_requests_are_not_carried_along(tmp_path: Path):
    """Newer clients keep whole requests in records of their own: what left must not come back by them."""
    session = made.small()
    blob = {"type": "api-request-blob", "sessionId": made.ID, "blob": "line 17: value_17 = rows[17]"}
    session.records.insert(5, blob)
    path = session.write(tmp_path / f"{made.ID}.jsonl")
    _, copy = cut(path)
    assert "value_17 = rows[17]" not in copy.path.read_text("utf-8")


def test_a_history_cut_at_its_end_still_ends_with_the_agent(tmp_path: Path):
    """Behind a user's record that comes last the client would put an answer of its own into the agent's mouth."""
    path = made.small().write(tmp_path / f"{made.ID}.jsonl")
    _, copy = cut(path, at="end")
    said = [record for record in records(copy.path) if record["type"] in ("user", "assistant")]
    assert said[-1]["type"] == "assistant" and said[-2].get("isMeta")
    assert said[-1]["parentUuid"] == said[-2]["uuid"]
