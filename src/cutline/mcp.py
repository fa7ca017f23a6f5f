"""The tools that an agent is given: micro_handoff, recall and say, and what each call is answered.

Law: what is answered is decided in checkpoint, risks and recall; here it is only asked for and passed on. Tool
output is data: nothing of a recalled result is interpreted. How calls arrive is no matter of this module.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import checkpoint, events, notice, project, recall, record, risks
from .blocks import Event, Said, ToolCall, address
from .checkpoint import Document, Stamp
from .errors import CutlineError, InputError, Unreadable
from .measure import request_of
from .recall import ADDRESS, Recalled, SessionFiles, Source
from .sessions.clients import Found, open_found, sessions
from .specifics import value_of
from .wire import anthropic as wire

PAGE = 400_000
"""Characters of a result that come back at once; the client is told to take 500,000 (docs/claude-code.md)."""
_LISTED = 20
_GIVEN = 50_000  # characters of a call's arguments that are shown beside its result
_TRIES, _PAUSE_S, _LATEST = 60, 0.05, 5  # how long a call is waited for, and in how many sessions one looks
_TAIL = 1 << 20  # bytes of a session file's end in which a call that was just made stands
_PREFIX = "mcp__cutline__"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool answers.

    Attributes:
        texts: text parts, in order.
        images: (media type, base64) of images that belong to a recalled result.
        error: the call is to be shown as failed.
    """

    texts: tuple[str, ...]
    images: tuple[tuple[str, str], ...] = ()
    error: bool = False


@dataclass(frozen=True, slots=True)
class _Told:
    """A session up to the checkpoint call that is being answered.

    Attributes:
        session: the client's id of it.
        events: words and calls up to and with the message that makes the call, without the call itself.
        address: the call's; "" where the history does not hold it yet.
    """

    session: str
    events: list[Event]
    address: str


@dataclass(slots=True)
class Tools:
    """The three tools for the clients of one directory; threads may share them.

    Attributes:
        directory: the working directory.
        scope: the project that recall is scoped to.
        record: the durable record; None where recording is off.
        session: the client's id of its session, where a call does not say another; "" where nothing names one. The
            environment keeps the first one after a /clear, so the session that holds the call is taken instead.
        handed_back: sessions whose risks were handed back since their last stored checkpoint: the next one is stored.
        running: the session that the run's proxy saw last, for a client that names none; "" without a run.
    """

    directory: Path
    scope: str
    record: record.Record | None
    session: str
    handed_back: set[str] = field(default_factory=set)
    running: Callable[[], str] = str

    def call(self, name: str, arguments: Mapping[str, Any], call_id: str, session: str = "") -> Reply:
        """Answer a call.

        Args:
            name: the tool's name, without a client's prefix.
            arguments: its arguments.
            call_id: the provider's id of the call; "" where the client did not pass it on.
            session: the client's id of the session that makes it; "" where it did not pass it on.
        """
        if name == "say":
            return _say(arguments)
        if name == "recall":
            return self._recall(arguments)
        if name == "micro_handoff":
            return self._checkpoint(arguments, call_id, session or self.session or self.running())
        return Reply((f"no tool {name}; there are micro_handoff, recall and say",), error=True)

    # ------------------------------------------------------------------------------------------ recall

    def sources(self) -> list[Source]:
        """Where calls are looked for: the record, then the session files of this directory."""
        found: list[Source] = [SessionFiles(self.directory)]
        if self.record is not None:
            found.insert(0, recall.RecordedCalls(self.record, self.scope))
        return found

    def _recall(self, arguments: Mapping[str, Any]) -> Reply:
        what, offset = arguments.get("what"), arguments.get("offset", 0)
        if not isinstance(what, str) or not what.strip():
            return Reply(("what: an address of 16 hex digits, or words to search for",), error=True)
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            return Reply(("offset: a whole number of characters from 0",), error=True)
        what = what.strip()
        if not ADDRESS.match(what):
            return self._search(what.split())
        hit = recall.by_address(self.sources(), what)
        if hit is None:
            return Reply((f"nothing at the address {what} in this project; recall words to search",), error=True)
        return _shown(hit, what, offset, self.directory)

    def _search(self, words: Sequence[str]) -> Reply:
        hits = recall.by_words(self.sources(), words, _LISTED)
        if not hits:
            return Reply((f"no call in this project holds all of: {' '.join(words)}",), error=True)
        lines = [f"{notice.line(hit.call)}{_dated(hit)}" for hit in hits]
        more = f" (the first {_LISTED}; more words narrow it)" if len(hits) == _LISTED else ""
        return Reply(("\n".join([f"calls with these words, newest first{more}:", *lines]),))

    # -------------------------------------------------------------------------------------- checkpoint

    def _checkpoint(self, arguments: Mapping[str, Any], call_id: str, session: str) -> Reply:
        document = checkpoint.read(arguments)
        if isinstance(document, str):
            return Reply((document,), error=True)
        told = self._history(call_id, session)
        found = _risks(document, told.events) if told else None
        session = told.session if told else session
        if found and session not in self.handed_back:
            self.handed_back.add(session)
            return Reply((checkpoint.at_risk(found.lines),), error=True)
        self.handed_back.discard(session)
        stamp = project.stamp(self.directory)
        unproven = found.standing if found else ()
        said = checkpoint.reply(document, stamp, unproven)
        if told is None:
            said += "\nNothing was held against the record: this session's history was not found."
        text = json.dumps(arguments, ensure_ascii=False)
        where = told.address if told else ""
        if call_id and not where:
            where = address(call_id, _PREFIX + "micro_handoff", text.encode("utf-8", "surrogatepass"))
        try:
            self._store(session, where, text, stamp, unproven)
        except InputError as error:
            # It is a checkpoint all the same: the document stands in the history, where the cut keeps it.
            said += f"\nThe document is not in the record: {error}"
        return Reply((said,))

    def _store(self, session: str, where: str, text: str, stamp: Stamp, unproven: Sequence[str]) -> None:
        if self.record is None:
            return
        told, flags = json.dumps(stamp.as_json()), json.dumps({"unproven": list(unproven)})
        self.record.put_document(record.Document(session, self.scope, stamp.at, where, text, told, flags))

    def _history(self, call_id: str, session: str) -> _Told | None:
        """The session that makes a call; None where it is not to be had."""
        if self.record is not None and call_id:
            with contextlib.suppress(InputError):  # the client's own file will do
                told = self._recorded(call_id)
                if told is not None:
                    return told
        found = self._filed(call_id, session)
        if found is None:
            return None
        try:
            return _before(found.file.id, events.events(wire.read(open_found(found).history.body)))
        except CutlineError:
            return None

    def _recorded(self, call_id: str) -> _Told | None:
        """It out of the record; the proxy writes it while the client already calls, so it is waited for."""
        assert self.record is not None
        for _ in range(_TRIES):
            # By the call, not by the session: the client goes on under another id after a /clear.
            latest = sorted(self.record.sessions(self.scope), key=lambda row: row.last, reverse=True)
            for row in latest[:_LATEST]:
                held = self.record.history(row.session, row.agent)
                if held is not None and call_id.encode() in held.answer:
                    try:
                        return _before(row.session, events.events(_with_answer(held.body, held.answer)))
                    except Unreadable:
                        return None
            time.sleep(_PAUSE_S)
        return None

    def _filed(self, call_id: str, session: str) -> Found | None:
        """Its file: the one that holds the call, else the one of that id. The client writes it behind the call."""
        named = None
        for _ in range(_TRIES if call_id else 1):
            latest = sessions(self.directory)
            named = next((found for found in latest if found.file.id == session), None)
            held = [found for found in latest[:_LATEST] if call_id and _ends_with(found.file.path, call_id)]
            if held or not latest:
                return held[0] if held else None
            time.sleep(_PAUSE_S if call_id else 0)
        return named


def _risks(document: Document, whole: list[Event]) -> risks.Risks | None:
    """What is at risk with this document; None where nothing is."""
    begin = max(
        (n + 1 for n, event in enumerate(whole) if not isinstance(event, Said) and wire.is_stored(event)),
        default=0,
    )
    found = risks.find(whole[begin:], whole, document)
    return found if found.lines else None


def _say(arguments: Mapping[str, Any]) -> Reply:
    text = arguments.get("text")
    if not isinstance(text, str) or not text.strip():
        return Reply(("text: the words to say",), error=True)
    return Reply(("said",))


def _shown(hit: Recalled, wanted: str, offset: int, directory: Path) -> Reply:
    """A call's head line, its arguments, and its result exactly as it was."""
    call = hit.call
    result = call.result if call.result is not None else ""
    facts = [
        f"session {hit.session[:8]}" if hit.session else "",
        recall.when(hit.at),
        "never answered" if call.result is None else "an error" if call.error else "",
        recall.staleness(hit, directory),
        f"found behind the pointer at {wanted}" if wanted != call.address else "",
    ]
    part = result[offset : offset + PAGE]
    if offset or len(part) < len(result):
        end = offset + len(part)
        rest = f"; go on with offset {end}" if end < len(result) else ""
        facts.append(f"characters {offset:,} to {end:,} of {len(result):,}{rest}")
    given = call.arguments.decode("utf-8", "replace")
    if len(given) > _GIVEN:
        given = f"{given[:_GIVEN]}… ({len(given):,} characters)"
    head = f"{call.address} {call.name} {given}"
    told = "; ".join(fact for fact in facts if fact)
    return Reply((f"{head}\n{told}\nThe result, exactly as it was:", part), _images(hit) if not offset else ())


def _images(hit: Recalled) -> tuple[tuple[str, str], ...]:
    content = value_of(hit.content) if hit.content.startswith(b"[") else None
    found = []
    for block in content if isinstance(content, list) else []:
        source = block.get("source") if isinstance(block, dict) and block.get("type") == "image" else None
        if isinstance(source, dict) and source.get("type") == "base64":
            found.append((str(source.get("media_type")), str(source.get("data"))))
    return tuple(found)


def _dated(hit: Recalled) -> str:
    return f" ({recall.when(hit.at)})" if hit.at is not None else ""


def _with_answer(body: bytes, answer: bytes) -> wire.Request:
    """A body of any format, with the answer behind its last message; every answer is kept as content blocks."""
    request = request_of(body)[0]
    end = request.messages[-1].end
    return wire.read(request.body[:end] + b',{"role":"assistant","content":' + answer + b"}" + request.body[end:])


def _before(session: str, told: list[Event]) -> _Told:
    """A session up to the checkpoint call in flight: the last one, which has no result yet."""
    last = max((event.batch for event in told if isinstance(event, ToolCall)), default=0)
    for number in range(len(told) - 1, -1, -1):
        event = told[number]
        if not isinstance(event, ToolCall) or event.batch != last:
            continue  # one that was interrupted long ago is not in flight
        if wire.names_checkpoint(event.name) and event.result is None:
            beside = [one for one in told[number + 1 :] if isinstance(one, Said)]
            return _Told(session, [*told[:number], *beside], event.address)
    return _Told(session, told, "")


def _ends_with(path: Path, call_id: str) -> bool:
    """Whether a session file's end holds a call's id."""
    try:
        with path.open("rb") as handle:
            handle.seek(max(0, path.stat().st_size - _TAIL))
            return call_id.encode() in handle.read()
    except OSError:
        return False
