"""The agent's terminal without a terminal: keys through a pipe, what is told as text; the loop and the model are real."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("prompt_toolkit", reason="needs the extra: pip install 'cutline[agent]'")

from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import agent_made
from cutline.agent import events as ev
from cutline.agent.fullness import Fullness
from cutline.agent.models import partial
from cutline.agent.screen.blocks import Blocks
from cutline.agent.screen.draft import Draft, Keeper
from cutline.agent.screen.rendering import Renderer
from cutline.agent.screen.status import Figures, line
from cutline.agent.screen.telling import Teller, Told
from cutline.agent.screen.terminal import Terminal
from cutline.agent.state import State
from cutline.agent.tools.tool import Outcome, Piece
from cutline.agent.wanted import Wanted
from cutline.demo.model import Answer, Call, Model

# ---------------------------------------------------------------------------------------------------- blocks of Markdown

_MARKDOWN = "I read it.\n\n- one\n- two\n\n```py\na = 1\n\nb = 2\n```\nand on\n\n~~~\n```\n~~~\nend"


def blocks(pieces: list[str]) -> list[str]:
    made = Blocks()
    return [block for piece in pieces for block in made.feed(piece)] + made.end()


def test_blocks_are_given_out_as_they_are_complete():
    made = Blocks()
    assert made.feed("one\ntwo\n\nthr") == ["one\ntwo"] and made.rest == "thr"
    assert made.feed("ee\n```\na\n\n") == ["three"], "an empty line inside a fence ends nothing"
    assert made.feed("```\n") == ["```\na\n\n```"]
    assert made.end() == []


@settings(max_examples=60)
@given(st.lists(st.integers(0, len(_MARKDOWN)), max_size=12))
def test_blocks_do_not_depend_on_how_the_text_came(cuts: list[int]):
    ends = [*sorted(cuts), len(_MARKDOWN)]
    pieces = [_MARKDOWN[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    assert blocks(pieces) == blocks([_MARKDOWN])


@pytest.mark.parametrize("text", ["word " * 20_000, "```\n" + "line of code\n" * 5_000 + "```"])
def test_a_block_too_long_to_wait_for_comes_in_parts(text: str):
    made, parts = Blocks(), []
    for at in range(0, len(text), 100):
        parts += made.feed(text[at : at + 100])
        assert len(made.rest) < 20_000
    parts += made.end()
    assert len(parts) > 3
    told = "".join(parts).replace("```", "")
    assert re.sub(r"\s", "", told) == re.sub(r"\s", "", text.replace("```", "")), "no character is lost"


# ------------------------------------------------------------------------------------------------------- what is told

_EVIL = "\x1b]0;title\x07\x1b[2J\x1b[1;1Hallowed\x9b31m\u202e \x08\x00"
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def test_nothing_that_is_told_steers_a_terminal():
    calls = {"command": _EVIL, _EVIL: _EVIL, "n": [_EVIL]}
    told = Teller()
    seen: list[Told] = []
    for event in (
        ev.Human(_EVIL),
        ev.Hint(_EVIL),
        ev.Asked(1),
        *(ev.ThinkingDelta(letter) for letter in _EVIL),
        *(ev.TextDelta(letter) for letter in _EVIL),
        ev.Answered({}),
        ev.Called("c", _EVIL, calls, "0" * 16, False),
        ev.Called("s", "say", {"text": _EVIL}),
        ev.Called("b", "bash", calls),
        ev.ApprovalAsked("c", _EVIL, calls, _EVIL, _EVIL),
        ev.Denied("c", _EVIL, _EVIL),
        ev.Started("b", "bash"),
        *(ev.ToolOutput("b", letter) for letter in _EVIL),
    ):
        seen += told.tell(event, 0.0)
        held = told.live
        assert not _STEERS.search("".join([told.writing, *held.queued, *(one.tail for one in held.running.values())]))
    for event in (
        ev.Result("b", "bash", _EVIL, True, 1, _EVIL),
        ev.Checkpoint("k", {"done": _EVIL}, 3),
        ev.Handoff(_EVIL),
        ev.Notice(_EVIL),
        ev.Failed(_EVIL),
        ev.Retry(_EVIL, 1.0, 1),
    ):
        seen += told.tell(event, 1.0)
    assert len(seen) > 12
    for one in seen:
        assert not _STEERS.search(one.text + one.more), one
        plain = Renderer(colours=False).render(one, 60)
        assert not _STEERS.search(plain), one


def test_links_say_where_they_lead():
    text = Renderer().render(Told("said", "[the docs](http://other.example)"), 80)
    assert "http://other.example" in text and "\x1b]8" not in text


def test_an_answer_that_broke_off_is_told_as_that_and_the_words_once():
    told = Teller()
    seen = [one for event in (ev.Asked(1), ev.TextDelta("I read a.py\n\nbecau")) for one in told.tell(event, 0)]
    seen += told.tell(ev.Retry("overloaded", 1.0, 1, 16), 0)
    assert [one.kind for one in seen] == ["said", "lost", "fault"] and "does not count" in seen[-1].text
    seen = []
    for event in (ev.TextDelta("I read a.py"), ev.Answered({}), ev.Text("I read a.py")):
        seen += told.tell(event, 0)
    assert seen == [Told("said", "I read a.py")]


def test_a_long_result_is_told_by_its_ends_and_its_address():
    told = Teller()
    told.tell(ev.Called("b", "bash", {"command": "x"}, "0123456789abcdef"), 0)
    told.tell(ev.Started("b", "bash"), 0)
    text = "\n".join(f"line {n}" for n in range(1_000))
    (one,) = told.tell(ev.Result("b", "bash", text, exit_code=0), 2.0)
    assert one.text == "exit code 0 · 1,000 lines · 2.0 s · /recall 0123456789abcdef"
    assert one.more.split("\n")[0] == "line 0" and one.more.endswith("line 999") and "… 989 more lines" in one.more


def test_how_it_looks_without_colours():
    told = Teller()
    begun = [
        ev.Human("raise the limit to 20, where nothing speaks against it, please"),
        ev.Called("e", "edit", {"file_path": "a.py", "old_string": "1", "new_string": "2"}, "0" * 16, False),
        ev.Called("b", "bash", {"command": "cat > x <<E\na\nE", "timeout": 9}, "1" * 16, True),
        ev.ApprovalAsked("e", "edit", {}, "it changes a file", "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-1\n+\t2\n"),
        ev.Approved("e"),
        ev.Started("e", "edit"),
        ev.Result("e", "edit", "changed", diff="-1"),
        ev.Result("b", "bash", "a\tb\n[exit code 3]", True, 3),
    ]
    seen = [one for event in begun for one in told.tell(event, 0.0)]
    seen += [Told("answer", "/cost", "7 requests"), Told("keys", "", "Esc\tpauses\nAlt-Enter\ta new line")]
    renderer = Renderer(colours=False)
    assert (
        "".join(renderer.render(one, 44) for one in seen)
        == """\
› raise the limit to 20, where nothing
  speaks against it, please

▸ edit  a.py   (no intent stated)
▸ bash  timeout=9
  cat > x <<E
  a
  E
  --- a/a.py
  +++ b/a.py
  @@ -1 +1 @@
  -1
  +   2

? edit: it changes a file
· allowed
  edit · done

  bash · exit code 3 · 1 line
  │ a   b

· /cost
  7 requests

  Esc        pauses
  Alt-Enter  a new line

"""
    )


def test_markdown_stands_without_frames_and_empty_rows_around_it():
    table = Renderer().render(Told("said", "| a | b |\n|---|---|\n| 1 | 2 |"), 80)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", table)
    assert shown == " a  b\n ────\n 1  2\n\n"


def test_an_answer_that_was_stopped_leaves_the_figures_as_they_were():
    state = State()
    for said, used in (("It", {"input": 10, "usd": 0.5}), ("and", {})):
        state.apply(ev.Asked(1))
        state.apply(ev.Answered(partial(said), used))
    assert state.last.prompt == 10 and state.usd == 0.5


def test_the_status_line_keeps_what_matters_at_any_width():
    status = ev.Status(12, 11, 11, 12_400, 200_000, 0.42, 2)
    full = Fullness("pays", 12_400, 200_000, 34_000, 2.0)
    figures = Figures("anthropic:claude-sonnet-5", status, 1, full, "ready")
    assert line(figures, 200) == (
        "ready · claude-sonnet-5 · 12.4k/200k tokens 6 % · $0.42 · narrated 11/12 · 2 checkpoints · 1 hint queued"
        " · /checkpoint would pay: -34k"
    )
    for width in range(1, 200):
        assert len(line(figures, width)) <= width
    assert line(figures, 59) == "ready · 12.4k/200k · 11/12 told · 1 hint · /checkpoint -34k"


def test_a_draft_is_kept_for_its_owner_alone(tmp_path: Path):
    keeper = Keeper(tmp_path / "s.jsonl")
    keeper.keep(Draft("half \ud800 typed", "aside"))
    assert Keeper(tmp_path / "s.jsonl").read() == Draft("half \ud800 typed", "aside")
    assert keeper.path.stat().st_mode & 0o777 == 0o600
    keeper.keep(Draft())
    assert not keeper.path.exists() and keeper.read() == Draft()


# ------------------------------------------------------------------------------------------------------ the whole face


class Screen(DummyOutput):
    """An output that keeps what was printed."""

    def __init__(self) -> None:
        self.text = ""

    def write_raw(self, data: str) -> None:
        self.text += data


class Hands:
    """Who types."""

    def __init__(self, terminal: Terminal, pipe: Any, screen: Screen, made: list[agent_made.Made]) -> None:
        self.terminal, self._pipe, self.screen, self._made = terminal, pipe, screen, made

    @property
    def session(self) -> Any:
        return self._made[0].session

    def keys(self, text: str) -> None:
        self._pipe.send_text(text)

    async def until(self, holds: Callable[[], Any]) -> None:
        for _ in range(1_000):
            if holds():
                return
            await asyncio.sleep(0.005)
        raise AssertionError(f"it did not come to that:\n{self.screen.text}")

    async def line(self, text: str) -> None:
        await self.until(lambda: self.terminal.line.buffer.text == text)

    async def typed(self, text: str) -> None:
        self.keys(text)
        await self.line(text)

    async def ready(self) -> None:
        await self.until(lambda: self._made and self.session.state.turns and not self.terminal._busy)


def live(
    path: Path,
    script: list[Any],
    doing: Callable[[Hands], Awaitable[None]],
    *,
    rule: Any = lambda call, tool, place: ("allow", ""),
    tools: Any = (agent_made.READ,),
) -> tuple[str, Model]:
    """A session that a pair of hands works at; what was printed."""

    async def living(model: Model, pipe: Any) -> str:
        screen, made = Screen(), []

        async def opening(wanted: Wanted, face: Any) -> Any:
            one = agent_made.opened(path, model, face=face, rule=rule, tools=tools)
            made.append(one)
            own = SimpleNamespace(recall=lambda what: f"what {what} brought")
            return SimpleNamespace(
                session=one.session,
                own=own,
                transport=one.transport,
                log=one.log,
                handoffs=path.parent,
                load=lambda: None,
                close=one.close,
            )

        resumed = path if path.exists() else None
        wanted = Wanted(path.parent, agent_made.MODELS["anthropic"], path=resumed)
        terminal = Terminal(wanted, opening, input=pipe, output=screen, colours=False)
        hands = Hands(terminal, pipe, screen, made)
        running = asyncio.create_task(terminal.run())
        await hands.until(lambda: made and terminal._made is not None)
        await doing(hands)
        terminal.end()
        await running
        return screen.text

    with Model(script, refuses=agent_made.refuses) as model, create_pipe_input() as pipe:
        text = asyncio.run(living(model, pipe))
    assert model.refusals == []
    return text, model


def slow_tool(until: asyncio.Event | None = None) -> Any:
    """A tool that prints what would approve, hint and forge, and ends when it is told to (or never)."""

    async def printing(arguments: Any) -> AsyncIterator[Piece | Outcome]:
        for _ in range(3_000):
            yield Piece("y\r\n/quit\r\n\x03\x1b allowed\n")
            await asyncio.sleep(0.01)
            if until is not None and until.is_set():
                break
        yield Outcome("over")

    return agent_made.tool("slow", printing, "run")


WORK = Answer("I run slow, because it shows how long a.py takes; I expect `over`.", [Call("slow", {"path": "a.py"})])
DONE = Answer("It said `over`.")


def test_a_hint_typed_while_a_tool_runs_goes_with_its_result(tmp_path: Path):
    over = asyncio.Event()

    async def doing(hands: Hands) -> None:
        hands.keys("go\r")
        await hands.until(lambda: hands.terminal.teller.live.running)
        await hands.typed("use ü20")
        assert Keeper(tmp_path / "s.jsonl").read().line == "use ü20", "half-typed words are in a file"
        hands.keys("\r")
        await hands.until(lambda: hands.terminal.teller.live.queued == ["use ü20"])
        assert not Keeper(tmp_path / "s.jsonl").path.exists()
        over.set()
        await hands.ready()

    text, model = live(tmp_path / "s.jsonl", [WORK, DONE], doing, tools=[slow_tool(over)])
    assert "use ü20" in agent_made.said(model.main[1].raw)
    assert text.index("▸ slow") < text.index("› use ü20") < text.index("It said over.")


def test_half_typed_words_answer_no_question_and_are_not_lost(tmp_path: Path):
    async def doing(hands: Hands) -> None:
        await hands.typed("go")
        hands.keys("\r")
        await hands.until(lambda: hands.terminal.teller.live.active)
        await hands.typed("yes, and mind the te")
        await hands.until(lambda: hands.terminal._question)
        hands.keys("\t")
        await hands.line("")
        assert Keeper(tmp_path / "s.jsonl").read().aside == "yes, and mind the te"
        hands.keys("y\r")
        await hands.line("yes, and mind the te")
        hands.keys("sts\r")
        await hands.ready()

    rule = lambda call, tool, place: ("ask", "it runs a command")  # noqa: E731
    first = Answer(WORK.text, WORK.calls, delay_s=0.3)
    over = asyncio.Event()
    over.set()
    text, model = live(tmp_path / "s.jsonl", [first, DONE, DONE], doing, rule=rule, tools=[slow_tool(over)])
    assert "? slow: it runs a command" in text and "· allowed" in text
    assert "yes, and mind the tests" in agent_made.said(model.main[-1].raw)


def test_enter_sends_the_half_typed_words_first_and_then_the_question_is_answered(tmp_path: Path):
    async def doing(hands: Hands) -> None:
        hands.keys("go\r")
        await hands.until(lambda: hands.terminal.teller.live.active)
        await hands.typed("y")
        await hands.until(lambda: hands.terminal._question)
        hands.keys("\r")
        await hands.until(lambda: hands.terminal.teller.live.queued == ["y"])
        assert hands.terminal._question is not None, "it was a hint, and no answer"
        hands.keys("too dangerous\r")
        await hands.ready()

    rule = lambda call, tool, place: ("ask", "it runs a command")  # noqa: E731
    first = Answer(WORK.text, WORK.calls, delay_s=0.3)
    text, model = live(tmp_path / "s.jsonl", [first, DONE], doing, rule=rule, tools=[slow_tool()])
    said = agent_made.said(model.main[1].raw)
    assert "too dangerous" in said and "y" in said and "denied; your words go to the agent" in text
    assert not any(isinstance(event, ev.Started) for _, event in agent_made.logs.lines(tmp_path / "s.jsonl"))


def test_ctrl_c_stops_the_tool_and_twice_the_turn_and_no_output_of_a_tool_is_a_key(tmp_path: Path):
    async def doing(hands: Hands) -> None:
        hands.keys("go\r")
        await hands.until(lambda: hands.terminal.teller.live.running)
        await asyncio.sleep(0.1)
        assert hands.terminal.teller.live.running, "what it prints is no Ctrl-C and no /quit"
        hands.keys("\x03")
        await hands.until(lambda: len(hands.session.state.answers()) == 2 and hands.terminal.teller.live.running)
        hands.keys("\x03")
        await hands.ready()

    text, model = live(tmp_path / "s.jsonl", [WORK, WORK, DONE], doing, tools=[slow_tool()])
    assert "you stopped the turn" in text and len(model.main) == 2
    ended = [event for _, event in agent_made.logs.lines(tmp_path / "s.jsonl") if isinstance(event, ev.TurnEnded)]
    assert [event.reason for event in ended] == ["stopped"]


def test_escape_holds_the_agent_before_its_call_and_enter_lets_it_go_on(tmp_path: Path):
    async def doing(hands: Hands) -> None:
        hands.keys("go\r")
        await hands.until(lambda: hands.terminal.teller.live.active)
        hands.keys("\x1b")
        await hands.until(lambda: hands.session.paused)
        await hands.until(lambda: hands.session.state.open)
        await asyncio.sleep(0.1)
        assert not hands.terminal.teller.live.running
        hands.keys("\r")
        await hands.ready()

    first = Answer(
        "I read part_01.py, because a test needs it.", [Call("read_part", {"path": "part_01.py"})], delay_s=0.4
    )
    text, model = live(tmp_path / "s.jsonl", [first, DONE], doing)
    assert len(model.main) == 2 and "It said over." in text


def test_commands_are_the_humans_and_a_mistyped_one_is_not_sent(tmp_path: Path):
    async def doing(hands: Hands) -> None:
        hands.keys("/chekpoint\r")
        await hands.until(lambda: "no command /chekpoint" in hands.screen.text)
        await hands.line("/chekpoint")
        hands.keys("\x03")
        await hands.line("")
        hands.keys("/recall 0123456789abcdef\r/cost\r/undo-cut\r/help\r")
        await hands.until(lambda: "the session is kept" in hands.screen.text)
        hands.keys("\x1b[A")
        await hands.line("/help")
        hands.keys("\x15/etc/hosts is wrong\r")
        await hands.ready()

    text, model = live(tmp_path / "s.jsonl", [DONE], doing)
    assert "what 0123456789abcdef brought" in text and "0 requests" in text and "nothing was cut" in text
    assert "/etc/hosts is wrong" in agent_made.said(model.main[0].raw)


def test_a_session_goes_on_with_its_words_and_its_half_typed_line(tmp_path: Path):
    async def first(hands: Hands) -> None:
        hands.keys("look at it\r")
        await hands.ready()
        await hands.typed("and then")

    async def second(hands: Hands) -> None:
        await hands.line("and then")
        hands.keys(" stop\r")
        await hands.until(lambda: len(hands.session.state.answers()) == 2)
        await hands.ready()

    live(tmp_path / "s.jsonl", [DONE], first)
    text, model = live(tmp_path / "s.jsonl", [Answer("Stopped.")], second)
    assert text.index("› look at it") < text.index("It said over.") < text.index("› and then stop")
    assert "and then stop" in agent_made.said(model.main[0].raw)
