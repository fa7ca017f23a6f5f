"""The session of `cutline demo`: its words are written, its loop, tools and replies are real, and the two agree."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from math import floor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import cutline
import demo_made
import validator
from cutline import events, record, specifics
from cutline.demo import commands, compare, program, script
from cutline.demo.session import Demo, build
from cutline.errors import CutlineError
from cutline.wire import anthropic as wire
from demo_made import Played

pytest.importorskip("pydantic_ai", reason="needs the extra: pip install 'cutline[agent]'")

HANDOFF, RECALL = script.HANDOFF, script.RECALL
REMINDER = "<system-reminder>"


class Step(NamedTuple):
    """A call with its result and the agent's words around it."""

    message: int
    id: str
    tool: str
    arguments: dict[str, Any]
    result: str
    error: bool
    before: str
    after: str


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return demo_made.played(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def demo(played: Played) -> Demo:
    return played.demo


@pytest.fixture(scope="module")
def last(demo: Demo) -> bytes:
    """The last request uncut, as the record holds it, with the agent's last words behind it."""
    with record.Record(demo.project.parent / "record.db") as held:
        (row,) = held.sessions()
        found = json.loads(held.body(held.requests(row.session)[-1].id))
    ending = next(turn for turn in reversed(script.SCRIPT) if isinstance(turn, script.Agent))
    found["messages"].append({"role": "assistant", "content": [{"type": "text", "text": ending.says}]})
    return json.dumps(found, ensure_ascii=False).encode()


@pytest.fixture(scope="module")
def body(last: bytes) -> dict[str, Any]:
    """The same, decoded, results as texts, without what the harness put between."""
    parsed: dict[str, Any] = json.loads(last)
    for message in parsed["messages"]:
        message["content"] = [block for block in message["content"] if not block.get("text", "").startswith(REMINDER)]
        for block in of(message, "tool_result"):
            block["content"] = "".join(part["text"] for part in block["content"])
    return parsed


@pytest.fixture(scope="module")
def steps(body: dict[str, Any]) -> list[Step]:
    messages = body["messages"]
    results = {block["tool_use_id"]: block for message in messages for block in of(message, "tool_result")}
    found = []
    for number, message in enumerate(messages):
        for call in of(message, "tool_use"):
            result = results[call["id"]]
            found.append(
                Step(
                    number,
                    call["id"],
                    call["name"],
                    call["input"],
                    result["content"],
                    result.get("is_error", False),
                    said(message),
                    said(messages[number + 2]),
                )
            )
    return found


@pytest.fixture(scope="module")
def seam(steps: list[Step]) -> int:
    """Index of the checkpoint's message."""
    return next(step.message for step in steps if step.tool == HANDOFF and not step.error)


@pytest.fixture(scope="module")
def question(body: dict[str, Any]) -> int:
    """Index of the message with the question for the accountant."""
    asked = [turn.says for turn in script.SCRIPT if isinstance(turn, script.Human)][commands.QUESTION]
    return next(number for number, message in enumerate(body["messages"]) if said(message) == asked)


def of(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [block for block in message["content"] if block["type"] == kind]


def said(message: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in of(message, "text"))


def strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


# ------------------------------------------------------------------------------------------ what went over the wire


def test_it_is_a_request_that_the_provider_takes_before_and_after_the_cut(demo: Demo) -> None:
    for sent in (demo.whole, demo.sent):
        assert validator.faults(sent) == []
    assert json.loads(demo.whole)["model"] == "claude-opus-4-6"
    assert "é".encode() in demo.whole, "words outside ASCII stand as they are"


def test_what_went_out_is_what_the_cut_makes_and_it_is_proven(demo: Demo) -> None:
    assert cutline.cut(demo.whole).body == demo.sent and len(demo.sent) < len(demo.whole) / 3
    assert not cutline.verify(demo.whole, demo.sent).unchanged
    assert demo.report.faults == () and demo.report.refused == 0
    (step,) = demo.report.checkpoints
    assert step.sent_messages < step.whole_messages / 4


def test_roles_alternate_and_the_human_has_the_first_word(body: dict[str, Any]) -> None:
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2)


def test_each_call_has_its_result_in_the_next_message_and_results_come_first(body: dict[str, Any]) -> None:
    messages = body["messages"]
    seen = []
    for message, following in pairwise(messages):
        made = [call["id"] for call in of(message, "tool_use")]
        assert made == [result["tool_use_id"] for result in of(following, "tool_result")]
        if made:
            kinds = [block["type"] for block in following["content"]]
            assert kinds == ["tool_result"] * len(made) + ["text"] * (len(kinds) - len(made))
        seen += made
    assert len(seen) == len(set(seen))


def test_every_tool_that_is_called_is_declared(body: dict[str, Any], steps: list[Step]) -> None:
    declared = {tool["name"]: tool["input_schema"] for tool in body["tools"]}
    assert {step.tool for step in steps} == {"bash", "read", "edit", "write", HANDOFF, RECALL} < set(declared)
    for step in steps:
        assert set(declared[step.tool]["required"]) <= set(step.arguments) <= set(declared[step.tool]["properties"])


def test_it_has_the_size_of_a_small_session_and_most_of_it_is_the_worlds(
    demo: Demo, body: dict[str, Any], steps: list[Step]
) -> None:
    assert demo.steps == len(steps) and 40 <= len(steps) <= 50
    assert 60_000 <= len(demo.whole) <= 150_000
    blocks = [block for message in json.loads(demo.whole)["messages"] for block in message["content"]]
    weights = {kind: 0 for kind in ("text", "thinking", "tool_use", "tool_result")}
    for block in blocks:
        weights[block["type"]] += len(json.dumps(block, ensure_ascii=False, separators=(",", ":")).encode())
    assert 0.70 <= (weights["tool_use"] + weights["tool_result"]) / len(demo.whole) <= 0.85


def test_thinking_comes_first_in_its_message(body: dict[str, Any], seam: int) -> None:
    thinking = [(number, block) for number, message in enumerate(body["messages"]) for block in of(message, "thinking")]
    assert sum(number < seam for number, _ in thinking) >= 2 and any(number > seam for number, _ in thinking)
    for number, block in thinking:
        assert body["messages"][number]["content"][0] is block


def test_it_has_one_checkpoint_handed_back_once_and_life_after_it(
    body: dict[str, Any], steps: list[Step], seam: int
) -> None:
    draft, stored = (step for step in steps if step.tool == HANDOFF)
    assert draft.error and "checkpoint refused" in draft.result and not stored.error
    (wrong,) = [fact for fact in draft.arguments["facts"] if fact not in stored.arguments["facts"]]
    assert wrong["claim"] == commands.CLAIM and commands.CLAIM in draft.result
    assert "unproven" not in stored.result
    assert {fact["basis"] for fact in stored.arguments["facts"]} == {"measured", "inferred"}
    assert seam > 0.7 * len(body["messages"])
    assert 5 <= sum(step.message > seam for step in steps) <= 8


def test_the_human_speaks_between_calls_once_and_turns_the_agent_round(body: dict[str, Any], seam: int) -> None:
    messages = body["messages"]
    hints = [number for number, message in enumerate(messages) if of(message, "tool_result") and said(message)]
    assert len(hints) == 1 and hints[0] < seam
    assert "refund" not in "".join(said(message) for message in messages[: hints[0]])
    assert "refund" in said(messages[hints[0] + 1])
    assert sum(not of(message, "tool_result") and message["role"] == "user" for message in messages[1:]) == 3


# ---------------------------------------------------------------------------------- what is said is what is so


def test_what_the_script_relies_on_stands_in_the_real_results(steps: list[Step]) -> None:
    calls = [call for turn in script.SCRIPT if isinstance(turn, script.Agent) for call in turn.calls]
    assert len(calls) == len(steps)
    for call, step in zip(calls, steps, strict=True):
        assert call.shows, f"nothing is expected of {step.arguments}"
        for expected in call.shows:
            assert expected in step.result
        assert step.error == call.fails


DIGITS = r"\d+(?:,\d{3}(?!\d))*(?:\.\d+)?"
STATED = re.compile(rf"(?<![\w.,/:-])-?{DIGITS}(?![\w/])")
SHOWN = re.compile(rf"(-?)({DIGITS})")
QUOTED = re.compile(r"`([^`]+)`|“([^”]+)”")
FORECAST = re.compile(r"\bexpect|\bmust be left\b|\bis a mug at\b")
# Said and true, but not read off: what each is worked out from.
WORKED_OUT = {
    "14": "days with refunds, counted below",
    "5.5": "5 per cent of 1.10, in cents",
    "1000": "the last of range(1, 1001), which the agent writes with these words",
}


def statements(text: str) -> list[str]:
    """The sentences of a text that say what is, not what is expected."""
    return [part for part in re.split(r"(?<=[.!?;:])\s+", text) if not FORECAST.search(part)]


def test_every_number_that_the_agent_states_has_been_shown_to_it_before(body: dict[str, Any]) -> None:
    shown: set[str] = set(WORKED_OUT)
    checked = 0
    for message in body["messages"]:
        if message["role"] == "assistant":
            for sentence in statements(said(message)):
                numbers = [n for n in STATED.findall(sentence) if len(n) > 1]
                assert not (unknown := [n for n in numbers if n not in shown]), (unknown, sentence)
                checked += len(numbers)
            world = [call["input"] for call in of(message, "tool_use")]
        else:
            world = message["content"]
        for text in strings(world):
            for sign, digits in SHOWN.findall(text):
                shown |= {digits, sign + digits}
    assert checked > 60, "the check has looked at something"


def test_every_count_that_the_agent_repeats_stands_word_for_word_in_a_result_before(body: dict[str, Any]) -> None:
    results = ""
    repeated = 0
    for message in body["messages"]:
        if message["role"] == "user":
            results += "\n".join(result["content"] for result in of(message, "tool_result"))
            continue
        for sentence in statements(said(message)):
            for count in re.findall(r"[\d,]+ of \d+ (?:days|refunds)|[\d,]+ (?:tests|amounts), \d+ \w+", sentence):
                assert count in results
                repeated += 1
    assert repeated >= 10


def test_every_phrase_that_the_agent_quotes_stands_in_what_it_has_seen(body: dict[str, Any]) -> None:
    seen = ""
    checked = 0
    for message in body["messages"]:
        calls = "\n".join(text for call in of(message, "tool_use") for text in strings(call["input"]))
        if message["role"] == "assistant":
            for code, phrase in QUOTED.findall(said(message)):
                quoted = code or phrase
                if quoted not in ("closed", "12.34"):
                    assert quoted in seen or quoted in calls, quoted
                    checked += 1
        seen += calls + "\n".join(strings(message["content"]))
    assert checked > 30


def test_every_file_and_line_that_the_agent_names_is_what_it_says(body: dict[str, Any]) -> None:
    named: dict[tuple[str, int], str] = {}
    for message in body["messages"]:
        for path, line in re.findall(r"([\w/]+\.py):(\d+)", said(message)):
            named[path, int(line)] = program.FILES[path].splitlines()[int(line) - 1].strip()
    assert named == {
        ("till/money.py", 1): '"""Amounts are whole cents. Nothing in this package keeps an amount as a float."""',
        ("till/money.py", 6): "return round(float(text) * 100)",
        ("till/money.py", 21): "quotient = (2 * abs(numerator) + denominator) // (2 * denominator)",
        ("till/tax.py", 41): "return (net * rate + 50) // 100",
        ("till/discount.py", 19): "return (listed * (100 - percent) + 50) // 100",
    }


class Month(NamedTuple):
    """What went wrong in a month, worked out anew from the exports, by exact fractions."""

    off: dict[str, int]
    days: int
    refunds: dict[str, int]
    stray: int
    halves: dict[str, int]
    lines: int


def half_up(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


def charged(listed: int, percent: int, rate: int) -> tuple[int, int]:
    net = half_up(Fraction(listed * (100 - percent), 100))
    return net, half_up(Fraction(net * rate, 100))


def month(folder: Path) -> Month:
    percents = dict(row.split(",") for row in (folder.parent / "cafes.csv").read_text().splitlines()[1:])
    off: dict[str, int] = {}
    refunds: dict[str, int] = {}
    halves: dict[str, int] = {}
    stray = 0
    rows = [row.split(",") for row in (folder / "receipts.csv").read_text().splitlines()[1:]]
    for day, _, kind, _, cafe, _, _, listed, rate in rows:
        cents = int(Fraction(listed) * 100)
        if kind == "refund":
            refunds[day] = refunds.get(day, 0) + 1
            net, tax = charged(cents, int(percents[cafe]), int(rate))
            left = sum(charged(-cents, int(percents[cafe]), int(rate))) + net + tax
            stray += left != 0
            halves[day] = halves.get(day, 0) + (Fraction(net * int(rate), 100) % 1 == Fraction(1, 2))
            off[day] = off.get(day, 0) + left
    days = len((folder / "bank.csv").read_text().splitlines()) - 1
    return Month({day: cents for day, cents in off.items() if cents}, days, refunds, stray, halves, len(rows))


def test_the_story_is_true_by_a_count_that_shares_no_code_with_it(demo: Demo, body: dict[str, Any]) -> None:
    told = "\n".join(said(message) for message in body["messages"] if message["role"] == "assistant")
    march, february = month(demo.project / "data/march"), month(demo.project / "data/february")
    cents, halves, refunds = (sum(days.values()) for days in (march.off, march.halves, march.refunds))
    clean = {day: count for day, count in march.refunds.items() if day not in march.off}
    assert all(left > 0 for left in march.off.values()), "the till always says more than the bank"
    assert set(march.off) < set(march.refunds), "a refund is needed for the fault, and not enough for it"
    for claim in (
        f"{len(march.off)} of {march.days} days are off, {cents / 100} in all, from 0.01 on the 9th",
        f"{len(march.refunds)} days have refunds, and all {len(march.off)} bad days are among them",
        f"{march.stray} of {refunds} refunds don't undo their own sale",
        f"and what they leave is {cents} cents, the whole difference",
        f"half cents of tax explain {halves} of the {cents} cents, {cents - halves} remain",
        f"{halves} of {refunds} refunds, the same {halves}",
        f"called {march.lines} times each, once for every line",
        f"{len(february.off)} days were off, {sum(february.off.values())} cents in all",
        f"The 14th is odd: {march.refunds['2026-03-14']} refunds, and 0.0{march.off['2026-03-14']} off",
        f"On the 19th they explain {march.halves['2026-03-19']} of {march.off['2026-03-19']}, "
        f"on the 14th {march.halves['2026-03-14']} of {march.off['2026-03-14']}",
        "the 4th ({} refunds), the 13th ({}) and the 31st ({})".format(*clean.values()),
    ):
        assert claim in told
    assert [day[-2:] for day in clean] == ["04", "13", "31"], "the three days that have refunds and close"
    assert march.off["2026-03-09"] == min(march.off.values()) and march.off["2026-03-16"] == max(march.off.values())


def test_the_agent_admits_its_wrong_turn_and_takes_it_back(steps: list[Step], demo: Demo) -> None:
    (away, back) = [step for step in steps if step.tool == "edit" and step.arguments["file_path"] == "till/money.py"]
    assert away.arguments["new_string"] == back.arguments["old_string"]
    assert any("I was wrong" in step.after for step in steps if away.message < step.message < back.message)
    assert (demo.project / "till/money.py").read_text() == program.FILES["till/money.py"]


def test_every_call_is_narrated_as_the_mandate_asks(last: bytes, steps: list[Step]) -> None:
    review = events.review(wire.read(last))
    assert review.calls == sum(step.tool not in (HANDOFF, RECALL) for step in steps)
    assert review.holes == ()
    assert review.ritual == 0


# ---------------------------------------------------------------------------------------- what a cut shows by it


def test_the_specifics_are_said_before_the_seam_and_stand_nowhere_else_before_the_question(
    demo: Demo, body: dict[str, Any], steps: list[Step], seam: int, question: int
) -> None:
    assert len(compare.PARTS) >= 2
    document = next(step.arguments for step in steps if step.message == seam)
    for text in compare.PARTS:
        assert any(text in said(message) for message in body["messages"][:seam] if message["role"] == "assistant")
        assert not any(text in held for held in strings(document))
        for message in body["messages"][seam : question + 1]:
            assert not any(text in held for held in strings(message["content"]))
        assert text in demo.answer == said(body["messages"][question + 1])


def test_on_the_wire_the_specifics_stood_in_the_agents_words_alone(demo: Demo) -> None:
    for text in compare.PARTS:
        holders = [
            (message["role"], block["type"])
            for message in json.loads(demo.sent)["messages"]
            for block in message["content"]
            if any(text in held for held in strings(block))
        ]
        assert set(holders) == {("assistant", "text")}


def test_the_one_liner_was_reached_by_iteration_and_its_text_leaves_with_its_call(
    demo: Demo, last: bytes, steps: list[Step], seam: int
) -> None:
    assert commands.TRY_1 != commands.TRY_2 != commands.TRY_3 != commands.TRY_1
    tries = [
        step for step in steps if step.arguments.get("command") in (commands.TRY_1, commands.TRY_2, commands.TRY_3)
    ]
    assert [step.arguments["command"] for step in tries] == [commands.TRY_1, commands.TRY_2, commands.TRY_3]
    assert len({step.result for step in tries}) == 3 and tries[-1].message < seam
    assert demo.craft.arguments == json.dumps(tries[-1].arguments, ensure_ascii=False, separators=(",", ":")).encode()
    for sent in (demo.sent, cutline.cut(last).body):
        assert not any(commands.TRY_3 in text for text in strings(json.loads(sent)))


def test_the_recipe_was_written_before_the_seam_is_on_disk_and_the_document_names_it(
    demo: Demo, steps: list[Step], seam: int
) -> None:
    (written,) = [step for step in steps if step.arguments.get("file_path") == commands.RECIPE]
    assert written.tool == "write" and written.message < seam
    assert (demo.project / commands.RECIPE).read_text() == commands.RECIPE_TEXT == written.arguments["content"]
    document = next(step.arguments for step in steps if step.message == seam)
    assert document["recipes"] == [commands.RECIPE]
    assert any(step.message > seam and commands.RECIPE in step.arguments.get("command", "") for step in steps)


def test_a_result_that_the_cut_removed_is_brought_back_by_the_address_that_recall_gave(
    demo: Demo, steps: list[Step], seam: int
) -> None:
    searched, fetched = (step for step in steps if step.tool == RECALL)
    (first,) = [step for step in steps if step.arguments.get("command") == commands.PAIRS]
    assert first.message < seam < searched.message and len(first.result.splitlines()) > 40
    assert fetched.arguments == {"what": demo.recalled.address} and demo.recalled.address in searched.result
    assert demo.recalled.address in {gone.address for gone in cutline.cut(demo.whole).removed}
    assert first.result in fetched.result and demo.recalled.result == first.result
    listed = [line for line in first.result.splitlines() if line.startswith("2026-03")]
    assert (demo.project / script.LIST).read_text().splitlines() == listed and len(listed) == 42


def test_another_context_keeps_fewer_of_the_specifics_and_says_nothing_false(demo: Demo, last: bytes) -> None:
    found, stated = compare.contexts(demo.whole, demo.sent, HANDOFF)
    assert [one.name for one in found] == ["client summary", "full handoff", "micro-handoff"]
    summary, handoff, micro = found
    assert stated > 50 and summary.named < handoff.named < micro.named == stated
    assert (summary.said, handoff.said, micro.said) == (0, 0, 1)
    assert summary.bytes < handoff.bytes < micro.bytes < len(demo.whole) / 3
    held = [[bool(compare.holder(one, text)) for text in compare.PARTS] for one in found]
    assert held == [[False, False], [True, False], [True, True]]
    shown = last.decode()
    for document in (compare.SUMMARY, compare.HANDOFF):
        names = [name for name in specifics.names(document) if any(map(str.isdigit, name))]
        assert names and not [name for name in names if not specifics.stands(name, shown)]
    for one in found:
        assert validator.faults(one.body) == []
        assert json.loads(one.body)["messages"][-1] == json.loads(demo.whole)["messages"][-1]


# ------------------------------------------------------------------------------------------ the same everywhere


def test_it_is_done_well_within_twenty_seconds(played: Played) -> None:
    assert played.seconds < 12


def test_the_repaired_program_is_left_in_the_folder(demo: Demo) -> None:
    assert "round_div" in (demo.project / "till/tax.py").read_text()
    assert "round_div" in (demo.project / "till/discount.py").read_text()


def test_what_is_not_the_projects_is_left_alone(demo: Demo) -> None:
    assert {entry.name for entry in demo.project.parent.iterdir()} >= {
        "crumb",
        "programs",
        "record.db",
        "session.jsonl",
    }
    before_the_seam = demo.whole[: demo.whole.index(b"checkpoint stored")]
    for path in (str(demo.project.parent), sys.executable, tempfile.gettempdir()):
        assert path.encode() not in before_the_seam, "no path of this machine, but for the stamp of the checkpoint"


@pytest.mark.slow
def test_the_tools_give_the_same_whatever_the_folder_and_the_environment(
    demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "LC_ALL": "de_DE.UTF-8",
        "PYTHONSAFEPATH": "1",
        "PYTHONWARNINGS": "error",
        "PYTHONHASHSEED": "5",
        "GREP_COLORS": "mt=01;31",
        "GREP_OPTIONS": "--color=always",
        "CDPATH": "/",
        "FORCE_COLOR": "1",
        "POSIXLY_CORRECT": "1",
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "CUTLINE_RECORD": str(tmp_path / "other.db"),
    }.items():
        monkeypatch.setenv(name, value)
    other = build(Path("it's a folder", "with $IFS"))
    seam = demo.whole.index(b"checkpoint stored")
    assert other.whole[:seam] == demo.whole[:seam]
    assert not (tmp_path / "other.db").exists()


# ------------------------------------------------------------------------------------------------ when it fails


def fails(directory: Path) -> str:
    with pytest.raises(CutlineError) as caught:
        build(directory)
    text = str(caught.value)
    assert "\n" not in text and len(text) < 600
    return text


def test_a_folder_that_holds_a_project_already_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "crumb").mkdir()
    assert "exists already" in fails(tmp_path)
    assert list((tmp_path / "crumb").iterdir()) == []


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in fails(tmp_path / "file" / "folder")


def test_a_command_that_is_missing_stops_it_at_the_step_that_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = fails(tmp_path / "demo")
    assert text.startswith("step 1 of the demo failed: bash “find . ")
    assert "in PATH" in text


def test_a_reply_that_is_not_what_the_words_say_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(program.FILES, "README.md", program.FILES["README.md"].replace("Not nearly.", "Roughly."))
    assert fails(tmp_path).startswith("step 2 of the demo did not show “A day is closed when")
