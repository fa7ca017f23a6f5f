"""Whether a moved session says what the session said: what the other client's own reader finds in the written file,
held against the source's whole history.

Law: read with a reader of JSON of its own, and nothing of the choosing is asked. The human's and the agent's words are
those of the uncut history, all of them, in order, each with its author; a call has its result and no result is alone;
what is nobody's is what was meant to be. The first difference ends the move.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, cast

from ..cut import Cut
from ..errors import CutError
from ..notice import Trace
from ..verify import verify
from ..wire import anthropic as wire
from . import moved
from .claude_code import people
from .model import History, Session
from .moved import Call, Message, Picture, Result, Target, Text

What = Literal["human", "agent", "picture", "call", "result", "aside"]


class Fact(NamedTuple):
    """One thing that a history holds: what it is, and what it says, as values that can be compared."""

    what: What
    said: Any


class _Number(str):
    """A number's literal: 1 is not "1"."""

    __slots__ = ()


def proven(body: bytes, done: Cut, trace: Trace, keep_tools: Iterable[str], at: int) -> None:
    """Prove the cut that a move stands on.

    Raises:
        CutError: it is not what the contract leaves of the history.
    """
    if done.plan is None:
        return
    proof = verify(body, done.body, trace=trace, keep_tools=keep_tools, at=at, session=True)
    if proof.last_notice != done.plan.last_notice:
        raise CutError(2, "the notice", "it does not say what really left")


def arrived(session: Session, messages: Sequence[Message], to: str, into: Target, history: History) -> None:
    """Compare what was written with the session, and with what was to be written.

    Args:
        session: the source.
        messages: what was to be written.
        to, into: the other client, and what writes its files.
        history: of the written file, as that client's reader gives it.

    Raises:
        CutError: the first difference.
    """
    found = [fact for fact in _read(history, to, into) if not (fact.what == "aside" and fact.said in into.ADDED)]
    _same("part", [*_meant(messages, into.ERRORS)], [_mute(fact, into.ERRORS) for fact in found])
    _same("text", [*_words(session)], [fact for fact in found if fact.what in ("human", "agent")])
    open_: list[str] = []
    for number, fact in enumerate(found):
        if fact.what == "call":
            open_.append(fact.said[0])
        elif fact.what == "result":
            if fact.said[0] not in open_:
                raise CutError(5, f"part {number}", "a result answers no call before it")
            open_.remove(fact.said[0])
        elif open_:
            raise CutError(5, f"part {number}", "it stands between a call and its result")
    if open_:
        raise CutError(5, "the end", "a call has no result")


def typed(name: str, type_: str, text: str) -> bool:
    """Whether a person typed a text of a message of a person's; other readers than Claude Code's have parted those."""
    return name != "claude-code" or people.typed(type_, text)


def _same(what: str, expected: list[Fact], found: list[Fact]) -> None:
    for number, (one, two) in enumerate(zip(expected, found, strict=False)):
        if one != two:
            raise CutError(1, f"{what} {number}", f"{_show(one)} was read back as {_show(two)}")
    if len(expected) != len(found):
        more = (expected if len(expected) > len(found) else found)[min(len(expected), len(found))]
        kind = "is missing" if len(expected) > len(found) else "was never said"
        raise CutError(1, f"{what} {min(len(expected), len(found))}", f"{_show(more)} {kind}")


def _show(fact: Fact) -> str:
    said = fact.said if isinstance(fact.said, str) else json.dumps(fact.said)
    return f"{fact.what} “{said[:60].encode('utf-8', 'replace').decode()}”"


# ------------------------------------------------------------------------------------- what was to be written


def _meant(messages: Sequence[Message], errors: bool) -> Iterator[Fact]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, Text):
                yield Fact(
                    "aside" if message.who == "aside" else "human" if message.who == "human" else "agent",
                    _value(part.literal),
                )
            elif isinstance(part, Picture):
                yield Fact("picture", _shown(part))
            elif isinstance(part, Call):
                yield Fact("call", (part.id, part.own or part.name, _value(part.arguments)))
            elif isinstance(part, Result):
                shown = [_shown(picture) for picture in part.pictures]
                yield Fact("result", (part.id, _value(part.text), shown, part.error and errors))


def _value(literal: bytes) -> Any:
    return json.loads(literal, parse_int=_Number, parse_float=_Number)


def _mute(fact: Fact, errors: bool) -> Fact:
    return fact if errors or fact.what != "result" else Fact("result", (*fact.said[:3], False))


def _shown(picture: Picture) -> tuple[str, str]:
    return (picture.media, picture.data) if picture.data else ("", picture.url)


# ------------------------------------------------------------------------------------------- what is there


def _messages(history: History) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each message's origin, and its blocks."""
    told = json.loads(history.body, parse_int=_Number, parse_float=_Number)["messages"]
    for message, origin in zip(told, history.origins, strict=True):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        yield origin, blocks


def _words(session: Session) -> Iterator[Fact]:
    """Every word that was said in the session, whatever a cut makes of the rest."""
    for origin, blocks in _messages(session.history):
        for block in blocks:
            text = block.get("text" if block["type"] == "text" else "thinking")
            if not isinstance(text, str) or not text.strip():
                continue
            if block["type"] == "text" and origin == "agent":
                yield Fact("agent", text)
            elif block["type"] == "text" and origin == "human" and typed(session.client, "text", text):
                yield Fact("human", text)
            elif block["type"] == "thinking" and _shown_to_the_human(block):
                yield Fact("agent", text)


def _shown_to_the_human(block: dict[str, Any]) -> bool:
    signature = block.get("signature")
    return isinstance(signature, str) and wire.signed_narration(signature)


def _read(history: History, name: str, forms: Target) -> Iterator[Fact]:
    """What the written file holds."""
    for origin, blocks in _messages(history):
        for block in blocks:
            kind = block["type"]
            if kind == "text" and origin in ("agent", "human"):
                whose = origin == "agent" or typed(name, "text", block["text"])
                yield Fact(cast(What, origin) if whose else "aside", block["text"])
            elif kind == "text":
                yield Fact("aside", block["text"])
            elif kind == "tool_use":
                yield Fact("call", (block["id"], _bare(block["name"]), block["input"]))
            elif kind == "tool_result":
                yield Fact("result", _result(block, forms))
            elif kind in ("image", "document"):
                yield Fact("picture", _picture(block, forms))
            else:
                yield Fact("aside", forms.aside(str(block.get("raw", ""))))


def _bare(name: str) -> str:
    """A tool's name; of Cutline's own tools the last part, since each client puts its own before it."""
    own = [bare for bare in ("micro_handoff", "recall", "say") if name.endswith(bare)]
    return own[0] if own and name.removesuffix(own[0]) in ("", *_PREFIXES) else name


_PREFIXES = ("mcp__cutline__", "cutline_", "mcp_cutline_")


def _result(block: dict[str, Any], forms: Target) -> tuple[str, str, list[tuple[str, str]], bool]:
    content = block.get("content", "")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    shown = [_picture(part, forms) for part in parts if part["type"] != "text"]
    return block["tool_use_id"], text, shown, block.get("is_error") is True


def _picture(block: dict[str, Any], forms: Target) -> tuple[str, str]:
    source = block.get("source", {})
    found = forms.picture(source["data"]) if source.get("type") == "client" else moved.inside(block)
    return ("", "") if found is None else _shown(found)
