"""Moving a session to another client: what goes along, in no client's form, and what stays behind.

Law: the cut decides what of the world's is kept; of that only what means something elsewhere goes along: checkpoints,
what was asked and answered, and, behind a place that was asked for, whole pairs. Words go along to the last one.
Nothing is written that was not read again by the other client's own reader and found to say the same.
"""

from __future__ import annotations

import importlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from .. import narration, spans
from ..blocks import Block, Kind
from ..cut import cut_session
from ..errors import InputError
from ..notice import OPENING, Trace
from ..plan import Plan
from ..seam import At, Key
from ..splice import result_literal
from ..wire import anthropic as wire
from ..wire.anthropic import Request
from . import moved
from .arrived import arrived, proven, typed
from .clients import client
from .cutting import marked, place_of
from .model import Session
from .moved import Arrive, Call, Message, New, Part, Picture, Result, Target, Text, Written

TARGETS = ("claude-code", "codex", "opencode", "gemini-cli", "pi")
"""Clients that sessions are moved to."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,40}\Z").match
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_MARKS = re.compile(r"(?: \((?:cut|revived|moved from [^()]*)\))+\Z")
# Why a cut changes nothing where there is nothing to change.
_NOTHING = ("nothing before the seam is left to cut", "nothing stands before the place that was asked for")


@dataclass(frozen=True, slots=True)
class Move:
    """What a move would do.

    Attributes:
        session: the session.
        to: the other client, as in `TARGETS`.
        place: index of the message that it is cut before.
        new: what is to be written.
        left: how many of each thing stay behind: "calls", "results", "thinking" by the cut, others since they mean
            nothing elsewhere.
    """

    session: Session
    to: str
    place: int
    new: New
    left: Counter[str]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many of something go along, and their bytes, as they are written in the source."""

    number: int = 0
    bytes: int = 0


def tally(move: Move) -> dict[str, Tally]:
    """What goes along: "agent_texts", "human_texts", "checkpoints", "pairs" (other calls with their results),
    "pictures" and "asides"."""
    found: dict[str, list[int]] = {kind: [] for kind in _KINDS}
    for message in move.new.messages:
        for part in message.parts:
            if isinstance(part, Text):
                found["asides" if message.who == "aside" else f"{message.who}_texts"].append(len(part.literal) - 2)
            elif isinstance(part, Picture):
                found["pictures"].append(len(part.address))
            elif isinstance(part, Call):
                found["checkpoints" if part.own == "micro_handoff" else "pairs"].append(len(part.arguments))
            else:
                kind = "checkpoints" if part.own == "micro_handoff" else "pairs"
                found[kind][-1] += len(part.text) - 2
                found["pictures"] += [len(picture.address) for picture in part.pictures]
    return {kind: Tally(len(sizes), sum(sizes)) for kind, sizes in found.items()}


_KINDS = ("agent_texts", "human_texts", "checkpoints", "pairs", "pictures", "asides")


def target(name: str) -> Target:
    """The module that writes a client's sessions."""
    return cast(Target, importlib.import_module(f".{name.replace('-', '_')}.new", __package__))


def plan(
    session: Session,
    to: str,
    *,
    at: At | None = None,
    trace: Trace = "holes",
    keep_tools: tuple[str, ...] = (),
    cwd: str = "",
) -> Move:
    """Work out a move without writing anything.

    Args:
        session: the session.
        to: the client it is moved to.
        at: where to cut; behind it, calls and results go along. Without it everything is cut.
        trace, keep_tools: as in `cutline.cut`.
        cwd: the directory to resume it in, where the session names none.

    Raises:
        InputError: it is of that client, it can't be cut there, or the other client can't hold its words.
    """
    if session.client == to:
        raise InputError(f"{session.path}: is a session of {client(to).LABEL} already; type: cutline cut")
    found = session.history
    place = place_of(found, "end" if at is None else at)
    done = cut_session(found.body, trace=trace, keep_tools=keep_tools, at=place)
    if not done.changed and done.reason not in _NOTHING:
        raise InputError(f"{session.path.name}: {done.reason}, so it can't be moved")
    proven(found.body, done, trace, keep_tools, place)
    choosing = _Choosing(session, to, done.plan, done.seam.message if done.seam else place, keep_tools)
    messages = choosing.messages()
    _hold(session, to, messages)
    label = client(session.client).LABEL
    new = New(
        title=marked(_MARKS.sub("", session.title), f"moved from {label}"),
        cwd=session.cwd or cwd,
        model=found.model or "unknown",
        maker=session.client,
        now=time.time_ns() // 1_000_000,
        messages=tuple(messages),
    )
    return Move(session, to, place, new, choosing.left)


def execute(move: Move, output: Path | None = None) -> Written:
    """Write the session; it is read again as the other client's, and compared, before it counts as one.

    Args:
        move: the move.
        output: a file for what opencode imports; no other client has such.

    Raises:
        CutError: something was not found again, or not as it was; nothing is left behind.
        InputError: it can't be written.
    """
    into = target(move.to)
    write: Callable[[New, Arrive], Written] = into.write
    if output is not None:
        from .opencode.new import exported

        write = exported(output)
    return write(move.new, lambda history: arrived(move.session, move.new.messages, move.to, into, history))


def _hold(session: Session, to: str, messages: list[Message]) -> None:
    """Raise InputError for words that the other client's files can't hold."""
    if target(to).SURROGATES:
        return
    for message in messages:
        for part in message.parts:
            literal = _literal(part)
            if b"\\u" in literal and _is_broken(literal):
                raise InputError(
                    f"{session.path.name}: a text ({message.who}) holds half of a character (a lone surrogate), "
                    f"which {client(to).LABEL} reads in no file; move it to another client"
                )


def _literal(part: Part) -> bytes:
    """What a part says, as JSON."""
    if isinstance(part, Text):
        return part.literal
    if isinstance(part, Call):
        return part.arguments
    return part.text if isinstance(part, Result) else b""


def _is_broken(literal: bytes) -> bool:
    told = json.dumps(spans.decode(literal), ensure_ascii=False)
    return any("\ud800" <= letter <= "\udfff" for letter in told)


@dataclass(slots=True)
class _Choosing:
    """Which blocks go along, message by message."""

    session: Session
    to: str
    plan: Plan | None
    seam: int
    keep_tools: tuple[str, ...]
    left: Counter[str] = field(default_factory=Counter)
    ids: set[str] = field(default_factory=set)
    request: Request = field(init=False)
    pairs: dict[Key, Key] = field(init=False)
    answers: frozenset[Key] = field(init=False)

    def __post_init__(self) -> None:
        self.request = self.plan.request if self.plan else wire.read(self.session.history.body)
        self.pairs = wire.pairs(self.request.messages)[0]
        self.answers = frozenset(self.pairs.values())

    def messages(self) -> list[Message]:
        """What goes along, in order; each message knows by its number where it stood."""
        found = [(-1, _aside(self._opening()))]
        for run in self._runs():
            found += self._run(run)
        notice = self.plan.last_notice if self.plan else None
        if notice is not None:
            behind = next((at for at, (number, _) in enumerate(found) if number >= self.seam), len(found))
            # At the end it stands before the agent's last words: behind a prompt of nobody's a client may answer it.
            if behind == len(found) and found[-1][1].who == "agent" and not found[-1][1].calls():
                behind -= 1
            found.insert(behind, (self.seam, _aside(notice)))
        if self.plan:
            self.left += Counter(
                "thinking" if removed.kind is Kind.THINKING else f"{removed.kind}s" for removed in _gone(self.plan)
            )
        return [message for _, message in found]

    def _opening(self) -> str:
        theirs, ours = client(self.session.client).LABEL, client(self.to).LABEL
        return (
            f"{OPENING} What follows was said in {theirs} and was moved to {ours}. "
            f"The tools that it names are {theirs}'s; go on with those that you have here."
        )

    def _runs(self) -> Iterator[list[int]]:
        """Messages that are one answer: the agent's behind one another; every other message for itself."""
        run: list[int] = []
        for number, message in enumerate(self.request.messages):
            if run and (message.role != "assistant" or number == self.seam):
                yield run
                run = []
            if message.role == "assistant":
                run.append(number)
            else:
                yield [number]
        if run:
            yield run

    def _run(self, run: list[int]) -> list[tuple[int, Message]]:
        if self.request.messages[run[0]].role != "assistant":
            return self._other(run[0])
        said: list[tuple[int, list[Part]]] = []
        calls: list[Part] = []
        results: list[Part] = []
        for number in run:
            texts: list[Part] = []
            for index, block in enumerate(self.request.messages[number].blocks):
                key = (number, index)
                if block.kind is Kind.CALL:
                    pair = self._pair(key, block)
                    calls += pair[:1]
                    results += pair[1:]
                elif block.kind is not Kind.RESULT:
                    texts += self._said(key, block)
            if texts:
                said.append((number, texts))
        if not calls:
            return [(number, Message("agent", tuple(texts))) for number, texts in said]
        whole = [part for _, texts in said for part in texts]
        return [(run[0], Message("agent", (*whole, *calls))), (run[0], Message("results", tuple(results)))]

    def _said(self, key: Key, block: Block) -> list[Part]:
        """The agent's words in a block of its own."""
        kind, origin = block.kind, self.session.history.origins[key[0]]
        if kind is Kind.THINKING:
            spoken = self.plan is not None and key in self.plan.speak
            if spoken or (wire.is_narration(self.request, block) and wire.words(self.request, block).strip()):
                return [self._text(block)]
            if self.plan is None or key not in self.plan.drop:
                self.left["thinking"] += 1
        elif block.type == "compaction":
            self.left["sealed_summaries"] += 1
        elif origin != "agent":
            self.left["client_texts" if kind in (Kind.TEXT, Kind.CONTROL) else "unknown"] += 1
        elif kind is not Kind.TEXT:
            self.left["unknown"] += 1
        elif wire.words(self.request, block).strip():
            return [self._text(block)]
        else:
            self.left["blank_texts"] += 1
        return []

    def _other(self, number: int) -> list[tuple[int, Message]]:
        """A message of role user, or a system message within."""
        origin = self.session.history.origins[number]
        human: list[Part] = []
        asides: list[tuple[int, Message]] = []
        for index, block in enumerate(self.request.messages[number].blocks):
            if block.kind is Kind.RESULT:
                if (number, index) not in self.answers:
                    self.left["orphan_results"] += not (self.plan and (number, index) in self.plan.drop)
            elif origin == "human" and block.kind is Kind.TEXT and self._typed(block):
                if wire.words(self.request, block).strip():
                    human.append(self._text(block))
                else:
                    self.left["blank_texts"] += 1
            elif origin == "human" and block.kind in (Kind.IMAGE, Kind.DOCUMENT):
                human += self._attached(block)
            else:
                asides += [(number, _aside(text)) for text in self._asides(origin, block)]
        return [*asides, *([(number, Message("human", tuple(human)))] if human else [])]

    def _typed(self, block: Block) -> bool:
        return typed(self.session.client, block.type, wire.words(self.request, block))

    def _asides(self, origin: str, block: Block) -> Iterator[str]:
        """A notice that a session holds in a message of its own, or a client's summary; other texts stay behind."""
        if block.kind is Kind.TEXT:
            words = wire.words(self.request, block)
            if origin == "summary":
                label = client(self.session.client).LABEL
                yield f"{OPENING} {label}'s summary of what was said before:\n\n{words}"
                return
        else:
            forms = self._forms()
            words = forms.aside(_raw(self.request, block)) if forms else ""
        if words.startswith(OPENING):
            yield words
        else:
            self.left["client_texts" if block.kind in (Kind.TEXT, Kind.CONTROL) else "unknown"] += 1

    def _forms(self) -> Target | None:
        """What reads the source's own forms; None where no sessions are moved to that client."""
        return target(self.session.client) if self.session.client in TARGETS else None

    def _attached(self, block: Block) -> list[Picture]:
        found = picture(self._forms(), spans.decode(self.request.body[block.start : block.end]))
        if found is not None and target(self.to).holds(found):
            return [found]
        self.left["attachments"] += 1
        return []

    def _pair(self, key: Key, block: Block) -> list[Part]:
        """A call that goes along, with its result; nothing for any other."""
        answer = self.pairs.get(key)
        dropped = self.plan is not None and key in self.plan.drop
        if answer is None or dropped:
            self.left["unanswered_calls"] += answer is None and not dropped
            return []
        result = self.request.messages[answer[0]].blocks[answer[1]]
        behind = key[0] >= self.seam
        named = block.name in self.keep_tools
        if result.name == wire.LOADS or (not behind and not named and block.name in wire.INSTRUCTIONS):
            self.left["instructions"] += 1
            return []
        if not behind and not named and block.name in wire.TODO_LISTS:
            self.left["to_do_lists"] += 1
            return []
        id_, own = self._id(block.id), own_name(block.name)
        raw = wire.member(self.request, block, "input") or b"{}"
        arguments = raw if spans.is_object(raw) else b'{"input":%s}' % raw
        name = own or _UNFIT.sub("_", block.name)[:_LONGEST_NAME] or "tool"
        text, pictures = self._result(answer, result)
        return [
            Call(id_, name, own, arguments.replace(b"\n", b" ")),
            Result(id_, name, own, text, tuple(pictures), result.error),
        ]

    def _id(self, id: str) -> str:
        """A call's id; where it is taken or not of a form that every provider takes, one of ours."""
        found, number = id, len(self.ids)
        while found in self.ids or not _ID(found):
            found, number = f"call_moved_{number}", number + 1
        self.ids.add(found)
        return found

    def _result(self, key: Key, block: Block) -> tuple[bytes, list[Picture]]:
        """A result's words, with what a cut adds to them, and what it shows."""
        additions = self.plan.add.get(key, []) if self.plan else []
        literal = result_literal(self.request, block, additions)[0]
        view = literal.decode("latin-1")
        content = next((member for member in spans.members(view, 0)[0] if member.key == "content"), None)
        if content is None or view[content.start] not in '"[':
            return b'""', []
        if view[content.start] == '"':
            return literal[content.start : content.end], []
        insides: list[bytes] = []
        pictures: list[Picture] = []
        for start, end in spans.elements(view, content.start)[0]:
            members = {member.key: member for member in spans.members(view, start)[0]} if view[start] == "{" else {}
            text = members.get("text")
            if text is not None and view[text.start] == '"':
                insides.append(literal[text.start + 1 : text.end - 1])
                continue
            part = spans.decode(literal[start:end])
            shown = picture(self._forms(), part) if isinstance(part, dict) else None
            into = target(self.to)
            if shown is not None and into.SHOWN and into.holds(shown):
                pictures.append(shown)
            else:
                self.left["result_parts"] += 1
        return b'"%s"' % b"\\n".join(insides), pictures

    def _text(self, block: Block) -> Text:
        start, end = wire.text_span(self.request, block)
        return Text(b'"%s"' % self.request.body[start:end])


def own_name(name: str) -> str:
    """The bare name of a tool of Cutline's, whatever a client puts before it; "" for any other."""
    if wire.names_checkpoint(name):
        return "micro_handoff"
    if wire.is_say(name):
        return "say"
    return "recall" if narration.is_own(name) else ""


def picture(forms: Target | None, part: dict[str, object]) -> Picture | None:
    """An attachment of a history; None for what is none, or can't be read."""
    source = part.get("source")
    if isinstance(source, dict) and source.get("type") == "client":
        raw = source.get("data")
        return forms.picture(raw) if forms and isinstance(raw, str) else None
    return moved.inside(part)


def _raw(request: Request, block: Block) -> str:
    raw = wire.member(request, block, "raw")
    found = spans.decode(raw) if raw is not None else ""
    return found if isinstance(found, str) else ""


def _aside(text: str) -> Message:
    return Message("aside", (Text(spans.quote(text)),))


def _gone(found: Plan) -> Iterator[Block]:
    for (number, index), why in found.drop.items():
        if why != "blank text":
            yield found.request.messages[number].blocks[index]
