"""The command line as a person or a program meets it: a bare home, real files, exit codes, one-line errors."""

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

import commands
import cutline
import made


class Shell:
    """Runs `cutline` in a bare home with one project."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.project = home / "proj"
        self.project.mkdir(parents=True)
        self.folder = home / ".claude" / "projects" / cutline_folder(self.project)

    def __call__(self, *args: str, stdin: bytes = b"", env: dict | None = None) -> subprocess.CompletedProcess:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "NO_COLOR": "1", **(env or {})}
        return commands.run(*args, cwd=self.project, env=environment, stdin=stdin)

    def session(self, checkpoint: bool = False, id: str = made.ID) -> Path:
        return made.small(checkpoint, id, str(self.project)).write(self.folder / f"{id}.jsonl")


def cutline_folder(path: Path) -> str:
    from cutline.sessions.claude_code import folder_name

    return folder_name(path)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "home")


def fails(done: subprocess.CompletedProcess, code: int, *words: str) -> str:
    """Exit code, one line on standard error, no traceback, nothing on standard output."""
    text = done.stderr.decode()
    assert done.returncode == code, text + done.stdout.decode()
    assert "Traceback" not in text and text.count("\n") == 1, text
    assert text.startswith("cutline: ")
    for word in words:
        assert word in text
    return text


def body(checkpoints: int = 1) -> bytes:
    messages = [{"role": "user", "content": "Find the leak."}]
    for number in range(checkpoints):
        for step in range(3):
            id_ = f"toolu_{number}_{step}"
            messages.append(
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": f"Step {step} of {number}: heap dump next."},
                        {"type": "tool_use", "id": id_, "name": "Bash", "input": {"command": f"dump {step}"}},
                    ],
                }
            )
            result = {"type": "tool_result", "tool_use_id": id_, "content": "0xdeadbeef " * 400}
            messages.append({"role": "user", "content": [result]})
        ck = f"toolu_ck{number}"
        messages.append(
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": ck, "name": "micro_handoff", "input": {"done": "x"}}],
            }
        )
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": ck, "content": "Stored."}]})
    return json.dumps({"model": "claude-opus-4-7", "max_tokens": 9, "messages": messages}, indent=1).encode()


# ------------------------------------------------------------------------------------------- finding


def test_bare_cutline_in_a_place_without_sessions_says_what_to_do(shell: Shell):
    done = shell()
    assert done.returncode == 0
    assert b"cutline demo" in done.stdout and b"No session for" in done.stdout


def test_bare_cutline_shows_the_latest_session_and_the_next_command(shell: Shell):
    shell.session()
    done = shell()
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert "The importer drops the last row" in text
    assert "before the last human turn" in text and "cutline cut" in text
    assert "100 % kept" in text
    told = json.loads(shell("--json").stdout)
    assert told["chosen"] == "last" and told["kept"]["missing_bytes"] == 0


def test_ls_lists_the_directory_and_all(shell: Shell):
    shell.session()
    shell.session(id="99999999-2222-4333-8444-555555555555")
    assert shell("ls").stdout.count(b"The importer drops") == 2
    listed = json.loads(shell("ls", "--json", "--all").stdout)
    assert {entry["id"][:8] for entry in listed} == {"11111111", "99999999"}


def test_a_session_is_named_by_path_by_id_or_by_its_beginning(shell: Shell):
    path = shell.session()
    shell.session(id="99999999-2222-4333-8444-555555555555")
    for name in (str(path), made.ID, "1111"):
        assert json.loads(shell("show", name, "--json").stdout)["session"] == made.ID
    fails(shell("show", "77"), 2, "no session “77”", "cutline ls")


def test_the_configured_directory_is_honoured(shell: Shell):
    path = shell.session()
    elsewhere = shell.home / "elsewhere" / "projects" / path.parent.name
    elsewhere.mkdir(parents=True)
    path.rename(elsewhere / path.name)
    assert b"No session" in shell("ls").stdout
    found = shell("ls", env={"CLAUDE_CONFIG_DIR": str(shell.home / "elsewhere")})
    assert b"The importer drops" in found.stdout


# ------------------------------------------------------------------------------------------- a session


def test_cut_writes_a_proven_copy_and_leaves_the_original_alone(shell: Shell):
    path = shell.session()
    before = path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns
    done = shell("cut", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    copy = Path(told["copy"]["path"])
    assert copy.parent == path.parent and copy.stem == told["copy"]["id"] != made.ID
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns) == before
    records = [json.loads(line) for line in copy.read_text("utf-8").splitlines()]
    assert {record["sessionId"] for record in records} == {told["copy"]["id"]}
    assert records[-1]["type"] == "custom-title" and records[-1]["customTitle"].endswith("(cut)")
    assert told["resume_original"] == ["claude", "--resume", made.ID]
    kept = copy.read_text("utf-8")
    for words in ("because the loop's bound", "never touch the fixtures", "31 passed in each of four runs", "head -5"):
        assert words in kept
    # What a result said stands at most in the notice, which quotes the start of one that was not narrated.
    assert not any("value_17" in json.dumps(record) for record in records if not record.get("isMeta"))
    assert "the bound, or the buffer" not in kept
    meta = [record for record in records if record.get("isMeta")]
    assert len(meta) == 1 and "8 calls, 8 results" in meta[0]["message"]["content"]


def test_every_parent_of_the_copy_exists(shell: Shell):
    shell.session(checkpoint=True)
    copy = Path(json.loads(shell("cut", "--json").stdout)["copy"]["path"])
    records = [json.loads(line) for line in copy.read_text("utf-8").splitlines()]
    known = {record["uuid"] for record in records if "uuid" in record}
    parents = [record["parentUuid"] for record in records if "parentUuid" in record]
    assert parents.count(None) == 1 and set(parents) - {None} <= known
    assert len(known) == sum("uuid" in record for record in records)


def test_a_session_with_a_checkpoint_is_cut_there_and_the_notice_stands_in_its_result(shell: Shell):
    shell.session(checkpoint=True)
    told = json.loads(shell("cut", "--json").stdout)
    assert told["chosen"] == "checkpoint"
    copy = Path(told["copy"]["path"]).read_text("utf-8")
    assert "Checkpoint stored." in copy and "[cutline]" in copy and '"isMeta"' not in copy


def test_a_copy_has_nothing_left_to_cut(shell: Shell):
    for checkpoint in (False, True):
        path = shell.session(checkpoint=checkpoint)
        copy = json.loads(shell("cut", str(path), "--json").stdout)["copy"]["path"]
        fails(shell("cut", copy), 3, "left to cut")
        Path(copy).unlink()


def test_a_dry_run_writes_nothing(shell: Shell):
    path = shell.session()
    assert b"100 % kept" in shell("cut", "--dry-run").stdout
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(("at", "left"), (("human:2", 4), ("end", 9), ("last", 8), ("9", 4)))
def test_at_chooses_the_place(shell: Shell, at: str, left: int):
    shell.session()
    told = json.loads(shell("cut", "--at", at, "--json", "--force").stdout)
    assert sum(removed["kind"] == "call" for removed in told["removed"]) == left


def test_a_cut_that_would_lose_money_asks_for_force(shell: Shell):
    made_ = made.Session(cwd=str(shell.project))
    made_.human("Hello.")
    made_.step("Looking.", "ls", "a")
    for number in range(3):
        made_.agent({"type": "text", "text": "words " * 4_000})
        made_.human(f"Go on {number}.")
    from datetime import UTC, datetime

    for record in made_.records:
        record["timestamp"] = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    path = made_.write(shell.folder / f"{made.ID}.jsonl")
    text = fails_with_figures(shell("cut"), 3)
    assert "--force" in text and "pay back" in text
    assert list(path.parent.iterdir()) == [path]
    assert shell("cut", "--force").returncode == 0


def fails_with_figures(done: subprocess.CompletedProcess, code: int) -> str:
    assert done.returncode == code and done.stderr.count(b"\n") == 1
    assert b"S " in done.stdout and b"D " in done.stdout
    return done.stderr.decode()


def test_recall_brings_a_removed_result_back_exactly(shell: Shell):
    shell.session()
    told = json.loads(shell("cut", "--json").stdout)
    address = next(removed["address"] for removed in told["removed"] if removed["kind"] == "result")
    result = shell("recall", address, "--session", made.ID, "--raw").stdout.decode()
    assert result == "\n".join(f"line {n}: value_{n} = rows[{n}]" for n in range(60))
    found = json.loads(shell("recall", "31", "passed", "--json", "-s", made.ID).stdout)
    assert len(found) == 4 and all(len(entry["address"]) == 16 for entry in found)
    fails(shell("recall", "0123456789abcdef"), 2, "nothing at the address")


def test_recall_finds_it_from_the_project_although_the_copy_is_newer(shell: Shell):
    shell.session()
    told = json.loads(shell("cut", "--json").stdout)
    address = next(removed["address"] for removed in told["removed"] if removed["kind"] == "call")
    assert b"value_59" in shell("recall", address).stdout


def test_show_says_what_was_narrated_and_what_it_cost(shell: Shell):
    shell.session(checkpoint=True)
    text = shell("show").stdout.decode()
    assert "Narrated:" in text and "Cost of these" in text
    told = json.loads(shell("show", "--json").stdout)
    assert told["narration"]["calls"] == 9 and told["cost"]["usd"] > 0
    assert b"cutline recall" in shell("show", "--holes").stdout


def test_show_tells_holes_by_tool_and_stretch_and_each_claim_with_its_basis_and_what_speaks_against_it(shell: Shell):
    session = made.Session(made.ID, cwd=str(shell.project))
    session.human("The importer drops the last row. Find out why.")
    why = "Reading importer.py: the last row is dropped, so the loop's bound must be off by one."
    session.step(why, "sed -n 1,40p importer.py", "ROW_BOUND = 77")
    session.agent({"type": "text", "text": "ROW_BOUND is 77, one too few."})
    session.step("", "pytest -q", "31 passed in 0.20s")
    session.checkpoint(
        facts=[
            {"claim": "31 passed", "basis": "measured", "evidence": "pytest -q"},
            {"claim": "44 passed", "basis": "measured", "evidence": "pytest -q"},
            {"claim": "the bound is wrong", "basis": "inferred", "evidence": ""},
        ]
    )
    session.human("Now the changelog.")
    session.step("", "head -5 CHANGELOG.md", "## 1.2", tool="Read")
    session.write(shell.folder / f"{made.ID}.jsonl")
    told = json.loads(shell("show", "--json").stdout)
    assert told["narration"]["by_tool"] == {"Bash": {"calls": 2, "holes": 1}, "Read": {"calls": 1, "holes": 1}}
    stretches = told["narration"]["by_stretch"]
    assert [(one["calls"], one["holes"]) for one in stretches] == [(2, 1), (1, 1)]
    assert {key: told["claims"][key] for key in ("measured", "inferred", "unmarked")} == {
        "measured": 2,
        "inferred": 1,
        "unmarked": 0,
    }
    doubts = [one["doubt"] for one in told["claims"]["stated"]]
    assert doubts[0] == doubts[2] == ""
    assert "44" in doubts[1]
    shown = shell("show", "--claims", "--holes").stdout.decode()
    assert "2 measured, 1 inferred; 1 of the measured ones not shown by the record." in shown
    assert "44 passed" in shown and "stretch" in shown and "from message" in shown


def test_show_names_what_a_provider_refuses_and_whether_a_cut_heals_it(shell: Shell):
    session = made.small(cwd=str(shell.project))
    path = session.write(shell.folder / f"{made.ID}.jsonl")
    text = path.read_text("utf-8")
    broken = text.replace('"content": "line 0: value_0', '"content": "half \\ud83d line 0: value_0')
    assert broken != text
    path.write_text(broken, "utf-8")
    shown = shell("show").stdout.decode()
    assert "broken surrogate escape" in shown and "a cut heals it" in shown
    copy = json.loads(shell("cut", "--json").stdout)["copy"]["path"]
    assert b"ud83d" not in Path(copy).read_bytes()


# --------------------------------------------------------------------------------------------- a body


def test_a_body_goes_to_standard_output_and_is_exactly_what_the_library_returns(shell: Shell):
    source = body()
    (shell.project / "b.json").write_bytes(source)
    wanted = cutline.cut(source).body
    assert shell("cut", "b.json").stdout == wanted
    assert shell("cut", "-", stdin=source).stdout == wanted
    assert shell("cut", "b.json", "-o", "o.json").returncode == 0
    assert (shell.project / "o.json").read_bytes() == wanted
    assert shell("verify", "b.json", "o.json").returncode == 0


def test_options_reach_the_library(shell: Shell):
    source = body(2)
    (shell.project / "b.json").write_bytes(source)
    for words, options in (
        (["--no-notice"], {"notice": False}),
        (["--join", ""], {"join": ""}),
        (["--join", "none"], {"join": None}),
        (["--trace", "all"], {"trace": "all"}),
        (["--keep-tool", "Bash"], {"keep_tools": ["Bash"]}),
        (["--at", "3"], {"at": 3}),
    ):
        assert shell("cut", "b.json", *words).stdout == cutline.cut(source, **options).body


def test_a_body_with_nothing_to_cut_comes_out_as_it_is_with_code_3(shell: Shell):
    for source in (b'{"messages":[]}', b"not json", b"", b"\xff\xfe\x00"):
        done = shell("cut", "-", stdin=source)
        assert done.returncode == 3 and done.stdout == source


def test_json_with_a_body_needs_a_file(shell: Shell):
    (shell.project / "b.json").write_bytes(body())
    fails(shell("cut", "b.json", "--json"), 2, "-o")
    told = json.loads(shell("cut", "b.json", "--json", "-o", "o.json").stdout)
    assert told["changed"] and told["proven"] and told["kept"]["share"] == 1


def test_verify_refuses_a_forged_body_with_code_1(shell: Shell):
    source = body()
    (shell.project / "b.json").write_bytes(source)
    (shell.project / "o.json").write_bytes(cutline.cut(source).body.replace(b"heap dump", b"heap dumb"))
    fails(shell("verify", "b.json", "o.json"), 1, "rule 1")


# ------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("name", "data"),
    (
        ("truncated.jsonl", b'{"type":"user","message":{"role":"us'),
        ("text.jsonl", b"hello world\n"),
        ("empty.jsonl", b""),
        ("binary.jsonl", b"\x7fELF\x00\x01\x02" * 99),
        ("latin.jsonl", b'{"type":"user","uuid":"a","message":{"role":"user","content":"\xe9"}}\n'),
        ("deep.jsonl", b"[" * 10_000 + b"]" * 10_000),
        ("other.jsonl", b'{"a":1}\n[2]\n'),
    ),
)
def test_a_bad_session_file_is_one_line_with_its_name(shell: Shell, name: str, data: bytes):
    (shell.project / name).write_bytes(data)
    for command in ("show", "cut"):
        fails(shell(command, name), 2, name)
    assert (shell.project / name).read_bytes() == data


def test_a_directory_a_missing_file_and_a_wrong_word_are_one_line(shell: Shell):
    fails(shell("cut", "."), 2, "directory")
    fails(shell("cut", "nowhere/x.jsonl"), 2, "no such file")
    fails(shell("cut", "--at", "tomorrow"), 2, "no place")
    fails(shell("cutt"), 2, "did you mean “cutline cut”")
    fails(shell("show", "--at", "1"), 2)


def test_a_read_only_folder_is_said_and_nothing_is_left(shell: Shell):
    path = shell.session()
    path.parent.chmod(0o500)
    try:
        done = shell("cut")
    finally:
        path.parent.chmod(0o700)
    if os.geteuid() == 0:
        pytest.skip("root writes into read-only folders")
    fails(done, 2, "can't be written")
    assert list(path.parent.iterdir()) == [path]


def test_the_help_page_names_every_command_that_there_is(shell: Shell):
    text = shell("--help").stdout.decode()
    from cutline.cli import _COMMANDS

    for name in _COMMANDS:
        assert name in text
        assert shell(name, "--help").returncode == 0


# ---------------------------------------------------------------------------------------------- the demo


def test_the_demo_runs_in_a_bare_home_and_leaves_nothing(shell: Shell):
    done = shell("demo")
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode()
    for words in ("100 % kept", "Proven", "brought back", "craft does not survive", "cutline resume", "you, meanwhile"):
        assert words in text
    assert {entry.name for entry in shell.home.iterdir()} <= {"proj", ".claude"}
    assert not list(shell.project.iterdir())


@pytest.mark.slow
def test_the_demo_keeps_what_it_is_told_to_keep(shell: Shell):
    told = json.loads(shell("demo", "--keep", "kept", "--json").stdout)
    assert told["proven"] and not told["craft_survives"] and told["next_request"]["sent_bytes"] < 30_000
    assert [one["specifics_kept"] < one["specifics_stated"] for one in told["compared"]] == [True, True, False]
    assert shell("verify", "kept/before.json", "kept/after.json").returncode == 0
    assert b"round_div" in (shell.project / "kept" / "crumb" / "till" / "tax.py").read_bytes()
    fails(shell("demo", "--keep", "kept"), 2, "not an empty directory")


@pytest.mark.slow
def test_the_demo_compares_the_cut_with_a_summary_and_a_handoff(shell: Shell):
    text = shell("demo", "--compare").stdout.decode()
    for words in (
        "client summary",
        "full handoff",
        "micro-handoff",
        "not in it",
        "42 of 162 refunds",
        "for the demo",
    ):
        assert words in text
