"""How the wire report and the status look: aligned, quiet, a ~ before what is estimated, nothing that did not occur."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

import made
from cutline import events, money
from cutline.cli import cli, paint, status, wire_report
from cutline.launch import start
from cutline.launch.run import Ended
from cutline.proxy import state
from cutline.proxy.ledger import Account, Read, Step
from cutline.sessions import clients
from cutline.sessions.claude_code.find import folder_name

SESSION = "8c4c8466-b277-405c-85b0-04759c19b526"


def account(**more: Any) -> Account:
    made = Account(
        SESSION,
        turns=41,
        sent=4_123_456,
        whole=13_012_345,
        used=money.Usage(12_345, 812_345, 91_234, 0, 23_456),
        uncut=3_012_345.0,
        model="claude-sonnet-4-5",
        steps=[
            Step("2fa8cb91a4e3d0c7", 412_345, 98_765, 345_678, 31_234, 8_210, 101_234, 24_321),
            Step("7ff9bb5db55400e0", 512_345, 118_765, 445_678, 51_234, 18_210, 131_234, 30_321),
        ],
        earlier=[Read(events.Channels(40, 21, 9, 4, 3), 2)],
    )
    for name, value in more.items():
        setattr(made, name, value)
    return made


def plain() -> Account:
    """A session without a checkpoint: nothing was cut."""
    used = money.Usage(1_000, 0, 0, 0, 30)
    return account(turns=1, sent=80_000, whole=80_000, used=used, uncut=1_000.0, steps=[], earlier=[])


def everything() -> Account:
    told = "rule 5: the provider refused the cut at 2fa8cb91a4e3d0c7 (no); the original was accepted"
    return account(agent_turns=6, phantoms=1, compactions=1, held_back=5, refusals=[told])


def shown(
    *accounts: Account,
    width: int,
    monkeypatch: pytest.MonkeyPatch,
    faults: tuple[str, ...] = (),
    again: str = "claude --resume",
    copied: bool = False,
) -> list[str]:
    """The report on a terminal of a width, without its colours."""
    out = io.StringIO()
    made = Console(file=out, highlight=False, soft_wrap=True, markup=False, width=width, force_terminal=True)
    monkeypatch.setattr(paint, "console", lambda err=False: made)
    wire_report.show(Ended(0, accounts, faults, "/r", (), again, copied), False)
    return [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", out.getvalue()).splitlines()]


def test_a_run_with_everything_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch):
    lines = shown(everything(), width=80, monkeypatch=monkeypatch, faults=("the record: disk full",))
    assert lines == [
        "",
        "Cutline · claude-sonnet-4-5 · 47 turns, 6 by sub-agents · session 8c4c8466",
        "",
        "                  sent        uncut     share",
        "bytes          4.12 MB     13.01 MB    31.7 %",
        "input tokens   915,924   ~3,010,000   ~30.4 %",
        "cost             $0.97       ~$1.60   ~60.8 %",
        "",
        "checkpoint                     request       of it messages   new text",
        "2fa8cb91a4e3d0c7    412.3 KB → 98.8 KB   345.7 KB → 31.2 KB     8.2 KB",
        "7ff9bb5db55400e0   512.3 KB → 118.8 KB   445.7 KB → 51.2 KB    18.2 KB",
        "",
        "cache         812,345 tokens read, 91,234 written; 23,456 answered",
        "narrated      85.0 % of 40 calls: 21 in text, 9 in narration blocks, 4 by say, 6",
        "              not at all; 3 narration blocks came without words",
        "work redone   2 calls repeated one that had left",
        "written out   1 turn wrote a call as text; no tool ran",
        "summaries     the client summarised the conversation once; held back 5 times for",
        "              a checkpoint",
        f"overhead      {overhead(everything())}",
        "rule 5: the provider refused the cut at 2fa8cb91a4e3d0c7 (no); the original was accepted",
        "",
        f"go on with Cutline   cutline run claude --resume {SESSION}",
        f"or in a cut copy     cutline resume {SESSION}",
        "cutline: the record: disk full",
    ]


def overhead(told: Account) -> str:
    size = wire_report.own_bytes()
    tokens = round(size * told.used.total_input / told.sent)
    return f"Cutline's tools and mandate: {paint.size(size)}, ~{tokens:,} tokens in each request"


def test_a_wide_terminal_breaks_no_line_in_two(monkeypatch: pytest.MonkeyPatch):
    lines = shown(everything(), width=120, monkeypatch=monkeypatch)
    assert "summaries     the client summarised the conversation once; held back 5 times for a checkpoint" in lines
    assert all(len(line) <= 120 for line in lines)


def test_a_run_without_a_checkpoint_says_so_and_no_more(monkeypatch: pytest.MonkeyPatch):
    assert shown(plain(), width=80, monkeypatch=monkeypatch)[:-3] == [
        "",
        "Cutline · claude-sonnet-4-5 · 1 turn · session 8c4c8466",
        "",
        "                  sent     uncut     share",
        "bytes          80.0 KB   80.0 KB   100.0 %",
        "input tokens     1,000     1,000   100.0 %",
        "cost           $0.0034   $0.0034   100.0 %",
        "",
        "cache         0 tokens read, 0 written; 30 answered",
        "checkpoints   none: everything was sent",
        f"overhead      {overhead(plain())}",
    ]


def test_a_subscriber_is_told_no_money(monkeypatch: pytest.MonkeyPatch):
    lines = shown(account(metered=False), width=80, monkeypatch=monkeypatch)
    assert not any("$" in line for line in lines) and any(line.startswith("input tokens") for line in lines)


def test_a_pipe_gets_the_same_words_without_colours_or_breaks(capsys: pytest.CaptureFixture[str]):
    wire_report.show(Ended(0, (everything(),), (), "/r"), False)
    told = capsys.readouterr()
    assert not told.out and "\x1b" not in told.err
    assert "summaries     the client summarised the conversation once; held back 5 times for a checkpoint\n" in told.err
    assert not [line for line in told.err.splitlines() if line != line.rstrip()], "no blanks at the ends of lines"


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch):
    for wanted in (None, "1"):
        monkeypatch.setenv("NO_COLOR", wanted) if wanted else monkeypatch.delenv("NO_COLOR", raising=False)
        out = io.StringIO()
        made = Console(file=out, width=80, force_terminal=True, color_system="standard")
        monkeypatch.setattr(paint, "console", lambda err=False, made=made: made)
        wire_report.show(Ended(0, (everything(),), (), "/r"), False)
        assert bool(re.search(r"\x1b\[(?:3|9)\d", out.getvalue())) is (wanted is None)


def test_a_run_of_only_a_summary_is_told_too(monkeypatch: pytest.MonkeyPatch):
    lines = shown(Account(SESSION, compactions=1, sent=10, whole=10), width=80, monkeypatch=monkeypatch)
    assert "summaries     the client summarised the conversation once" in lines


@pytest.mark.parametrize("client", start.CLIENTS.values(), ids=list(start.CLIENTS))
def test_how_to_go_on_is_told_in_the_clients_own_words(client: start.Client, monkeypatch: pytest.MonkeyPatch):
    again = f"{client.name} {client.again}"
    *_, first, second = shown(plain(), width=80, monkeypatch=monkeypatch, again=again, copied=client.copied)
    words = clients.client(client.sessions).resume(SESSION)
    way = f"go on with Cutline   cutline run {' '.join(words)}", f"or in a cut copy     cutline resume {SESSION}"
    copy = f"go on in a cut copy  cutline resume {SESSION}", f"or with Cutline      cutline run {' '.join(words)}"
    assert (first, second) == (copy if client.name == "gemini" else way)


def test_behind_the_proxy_alone_only_a_session_with_a_file_is_gone_on_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert "overhead" in shown(plain(), width=80, monkeypatch=monkeypatch, again="")[-1]
    session = made.Session(cwd=str(tmp_path), id=SESSION)
    session.human("Go.")
    session.agent({"type": "text", "text": "Gone."})
    session.write(tmp_path / "projects" / folder_name(str(tmp_path)) / f"{SESSION}.jsonl")
    told = shown(plain(), width=80, monkeypatch=monkeypatch, again="")
    assert told[-1] == f"go on in a cut copy  cutline resume {SESSION}"


def test_nothing_came_through(monkeypatch: pytest.MonkeyPatch):
    assert shown(width=80, monkeypatch=monkeypatch) == ["cutline: no request of a conversation came through the proxy"]


def test_the_figures_are_there_for_programs(capsys: pytest.CaptureFixture[str]):
    wire_report.show(Ended(3, (everything(),), ("x",), "/r"), True)
    told = json.loads(capsys.readouterr().err)
    (one,) = told["sessions"]
    assert (told["exit_code"], told["faults"]) == (3, ["x"])
    assert (one["compactions"], one["held_back"], one["phantom_calls"], one["work_redone"]) == (1, 5, 1, 2)
    assert one["narration"] == {
        "calls": 40,
        "in_text": 21,
        "in_narration_blocks": 9,
        "by_say": 4,
        "silent": 6,
        "hidden_narration_blocks": 3,
    }


# ------------------------------------------------------------------------------------------------- the status


def running(**more: Any) -> dict[str, Any]:
    told = state.of(account(last_sent=b"x" * 98_765, last=b"x" * 412_345), events.Channels(40, 21, 9, 4, 3), [], 1e9)
    return {**told, **more}


def test_the_status_of_running_sessions_is_a_table(monkeypatch: pytest.MonkeyPatch):
    runs = [(state.Path("run-1-x"), running(held_back=2)), (state.Path("run-2-y"), {})]
    monkeypatch.setattr(state, "running", lambda: iter(runs))
    told = CliRunner().invoke(cli, ["status"])
    assert told.exit_code == 0
    assert [line.rstrip() for line in told.output.splitlines()] == [
        "session          model               turns          last request   checkpoints   narrated",
        "8c4c8466         claude-sonnet-4-5      41   98.8 KB of 412.3 KB             2     85.0 %",
        "no request yet",
        "8c4c8466  summary held back 2×: a checkpoint is wanted",
    ]


@pytest.mark.parametrize(
    ("told", "line"),
    [
        ({}, "no request yet"),
        (running(), "sends 24.0 % (98.8 KB of 412.3 KB) · 2 checkpoints · 85.0 % narrated"),
        (running(checkpoints=0, narrated=None), "sends all (412.3 KB), no checkpoint yet"),
        (
            running(narrated=None, compactions=2, held_back=5),
            "sends 24.0 % (98.8 KB of 412.3 KB) · 2 checkpoints · summarised 2×",
        ),
        (
            running(narrated=None, faults=["x"]),
            "sends 24.0 % (98.8 KB of 412.3 KB) · 2 checkpoints · fault: see cutline status",
        ),
    ],
)
def test_the_status_in_one_line(told: dict[str, Any], line: str):
    assert status.describe(told, 1e9) == line


@pytest.mark.parametrize(
    ("used", "size", "environment", "warned"),
    [
        (141_000, 200_000, {}, ""),
        (142_000, 200_000, {}, "context 142k of 167k: a checkpoint soon"),
        (100_000, 200_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}, "context 100k of 117k: a checkpoint soon"),
        (420_000, 1_000_000, {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}, "context 420k of 490k: a checkpoint soon"),
        (420_000, 1_000_000, {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "x"}, ""),
        (830_000, 1_000_000, {}, "context 830k of 967k: a checkpoint soon"),
    ],
)
def test_the_line_warns_before_the_client_summarises(used: int, size: int, environment: dict[str, str], warned: str):
    usage = {"input_tokens": 1_000, "cache_read_input_tokens": used - 1_000}
    given = json.dumps({"context_window": {"context_window_size": size, "current_usage": usage}})
    told = CliRunner().invoke(cli, ["status", "--line"], input=given, env={state.VARIABLE: None, **environment})
    assert told.output.strip() == "cutline · no request yet" + (f" · {warned}" if warned else "")


@pytest.mark.parametrize(
    "given", ["", "no JSON", "[]", "{}", '{"context_window":{"current_usage":null}}', '{"context_window":7}']
)
def test_the_line_takes_whatever_it_is_given(given: str):
    told = CliRunner().invoke(cli, ["status", "--line"], input=given, env={state.VARIABLE: None})
    assert (told.exit_code, told.output.strip()) == (0, "cutline · no request yet")
