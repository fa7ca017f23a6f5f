"""The splice: a plan and a body's bytes become the cut body.

Law: what is kept is copied literally. Bytes are made in four places only: a joiner between two texts, the
wrapper of words that were a thinking block or a string, a mark that moves, and what the plan adds to results.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from . import spans
from .blocks import Block, Kind, Message
from .plan import Addition, Plan
from .seam import Key
from .wire import anthropic as wire
from .wire.anthropic import Request

_MARK = "cache_control"


@dataclass(slots=True)
class Out:
    """One message of the output, or a run of unchanged ones.

    Attributes:
        lead: index of the input message whose wrapper it has.
        last: the same, or behind the seam the last one of a run of unchanged input messages.
        pieces: what it holds, in order; several places in one piece are texts to be joined. Empty for a run.
        whole: it is that input message, or that run, unchanged.
        lost: a block of it left.
    """

    lead: int
    last: int
    pieces: list[list[Key]]
    whole: bool
    lost: bool = False


@dataclass(slots=True)
class Spliced:
    """The output of a splice.

    Attributes:
        body: the bytes.
        added: (start, end, place of the result in the input, filled) of what was added to results.
        joined: how many texts were joined onto another one.
        moved: system messages that had to move, by input index.
        ends: role of the last message that is not a system message.
    """

    body: bytes = b""
    added: list[tuple[int, int, Key, bool]] = field(default_factory=list)
    joined: int = 0
    moved: list[int] = field(default_factory=list)
    ends: str = ""


def splice(plan: Plan, join: str | None) -> Spliced:
    """Make the cut body. Adds the blank texts that had to go to `plan.drop`."""
    done = Spliced()
    outs = lay_out(plan, join, done)
    return _write(plan, outs, join, done)


# --------------------------------------------------------------------------------------------- layout


def lay_out(plan: Plan, join: str | None, done: Spliced) -> list[Out]:
    """The output's messages: what is left of each, what is joined, what had to move.

    System messages are laid out last: they separate nothing that the agent said, since behind its words none
    may stand (docs/wire.md, 1.2).
    """
    messages, start, drop = plan.request.messages, plan.seam.message, plan.drop
    head = [
        Out(number, number, [[(number, index)] for index in range(len(messages[number].blocks))], True)
        for number in range(plan.floor[0])
        if messages[number].role != "system"
    ]
    systems = [number for number in range(start) if messages[number].role == "system"]
    spoken = {key[0] for key in plan.speak}
    changed = spoken | {key[0] for key in plan.add}
    for number in range(plan.floor[0], start):
        message = messages[number]
        if message.role == "system":
            continue
        if len(message.blocks) == 1 and (number, 0) in drop:
            continue  # a call or a result alone: most messages
        pieces = [[(number, index)] for index in range(len(message.blocks)) if (number, index) not in drop]
        if not pieces:
            continue
        lost = len(pieces) < len(message.blocks)
        out = Out(number, number, pieces, not lost and number not in changed, lost or number in spoken)
        if message.role == "user" and not _settled(plan, number):
            _drop_blanks(plan, out)
        elif out.lost:
            _drop_empty(plan, out)
        if out.pieces:
            head.append(out)
    tail = _tail(plan, changed)
    if join is not None:
        head = _join(plan, head, done)
    for out in head:
        if messages[out.lead].role == "assistant" and not _settled(plan, out.lead):
            _drop_blanks(plan, out)
    head = [out for out in head if out.pieces]
    if plan.lead:
        _behind_leading_thinking(plan, head, tail, systems)
    return _place_systems(plan, head, tail, systems, done)


def _settled(plan: Plan, number: int) -> bool:
    """Whether a message stands before a compaction or holds it: nothing there changes."""
    return number <= plan.floor[0] and plan.floor != (0, -1)


def _tail(plan: Plan, changed: set[int]) -> list[Out]:
    """What stands from the seam on: runs of unchanged messages, and those that lost or were given something."""
    messages, drop, at = plan.request.messages, plan.drop, plan.seam.message
    lost = {key[0] for key in drop if key[0] >= at}
    tail: list[Out] = []
    for number in sorted(lost | {number for number in changed if number >= at}):
        tail += _runs(at, number)
        pieces = [[(number, index)] for index in range(len(messages[number].blocks)) if (number, index) not in drop]
        out = Out(number, number, pieces, False)
        if pieces and not (number in lost and _drop_blanks(plan, out)):
            tail.append(out)
        at = number + 1
    return tail + _runs(at, len(messages))


def _runs(start: int, end: int) -> list[Out]:
    return [Out(start, end - 1, [], True)] if start < end else []


def _drop_blanks(plan: Plan, out: Out) -> bool:
    """Drop white-space-only texts that would stand alone, and empty ones of a message that lost something.

    Providers refuse a message whose only text is white space (docs/wire.md, 1.2).
    """
    blank = [piece for piece in out.pieces if all(_is_blank(plan, key) for key in piece)]
    if not blank:
        return False
    alone = len(blank) == len(out.pieces)
    gone = [piece for piece in blank if alone or (out.lost and all(_is_empty(plan, key) for key in piece))]
    if gone:
        plan.drop.update(dict.fromkeys((key for piece in gone for key in piece), "blank text"))
        out.pieces = [piece for piece in out.pieces if piece[0] not in plan.drop]
        out.whole = False
    return not out.pieces


def _drop_empty(plan: Plan, out: Out) -> None:
    """Drop empty texts of the agent before anything is joined: a joiner next to nothing says nothing."""
    first = [piece[0] for piece in out.pieces]
    empty = [key for key in first if key > plan.floor and _block(plan, key).kind is Kind.TEXT and _is_empty(plan, key)]
    if empty:
        plan.drop.update(dict.fromkeys(empty, "blank text"))
        out.pieces = [piece for piece in out.pieces if piece[0] not in plan.drop]


def _is_empty(plan: Plan, key: Key) -> bool:
    request = plan.request
    return request.view[wire.text_start(request, _block(plan, key))] == '"'


def _is_blank(plan: Plan, key: Key) -> bool:
    request, block = plan.request, _block(plan, key)
    if block.kind is not Kind.TEXT:
        return False
    # The first character spares the decoding of nearly every other text.
    first = request.view[wire.text_start(request, block)]
    return (first in ' \\"' or first > "\x7f") and not wire.words(request, block).strip()


def _place_systems(plan: Plan, head: list[Out], tail: list[Out], systems: list[int], done: Spliced) -> list[Out]:
    """Put the system messages back: where they stood, or where they may stand (docs/wire.md, 1.2).

    One may stand behind a user's message or a provider's own result, and before an assistant's message or last.
    Where the cut took that away it moves behind the nearest earlier user's message, else behind the run of
    user messages that follows.
    """
    messages = plan.request.messages
    said = [*head, *tail]
    numbers = range(said[-1].last, said[-1].lead - 1, -1) if said else ()
    done.ends = next((messages[number].role for number in numbers if messages[number].role != "system"), "")
    firsts = [min(key[0] for piece in out.pieces for key in piece) if out.pieces else out.lead for out in said]
    behind: dict[int, list[int]] = {}
    roles = _Roles(plan, said)
    for number in systems:
        place = natural = bisect_left(firsts, number)
        if number > plan.floor[0] or plan.floor == (0, -1):
            place = _legal(roles, said, natural, number)
        if place != natural:
            done.moved.append(number)
        behind.setdefault(place, []).append(number)
    outs: list[Out] = []
    for place, out in enumerate([*said, None]):
        for number in behind.get(place, ()):
            blocks = range(len(messages[number].blocks))
            outs.append(Out(number, number, [[(number, index)] for index in blocks], True))
        if out is not None:
            outs.append(out)
    return outs


def _legal(roles: _Roles, said: list[Out], place: int, number: int) -> int:
    """The place for a system message: how many of the other messages stand before it."""
    pieces = said[place - 1].pieces if place else []
    inside = bool(pieces) and pieces[-1][-1][0] > number
    speaks_next = inside or roles.first(place) != "user"
    heard = place > 0 and not inside and (roles.last(place - 1) == "user" or roles.serves(place - 1))
    if heard and speaks_next:
        return place
    if place and (inside or roles.last(place - 1) != "user"):
        # Behind a provider's own result it may stand, but not where a user's message follows: then further up.
        found = roles.earlier(place - 1 if inside or heard else place)
        if found:
            return found
    if not speaks_next:
        while place < len(said) and roles.first(place) == "user":
            roles.split(place)
            place += 1
    return place


class _Roles:
    """The roles at the two ends of each message, or run of messages, that is laid out."""

    def __init__(self, plan: Plan, said: list[Out]) -> None:
        self._plan, self._said = plan, said
        self._heard = [0]  # for each place: the nearest one at or before it behind a user's message

    def earlier(self, place: int) -> int:
        """The nearest place at or before this one that a system message may stand at; 0 if there is none."""
        while len(self._heard) <= place:
            at = len(self._heard)
            heard = self.last(at - 1) == "user" or self.serves(at - 1)
            self._heard.append(at if heard else self._heard[-1])
        return self._heard[place]

    def first(self, at: int) -> str:
        return self._plan.request.messages[self._said[at].lead].role if at < len(self._said) else ""

    def last(self, at: int) -> str:
        return self._plan.request.messages[self._said[at].last].role

    def serves(self, at: int) -> bool:
        """Whether a message ends with a provider's own result."""
        pieces = self._said[at].pieces
        if not pieces or self.last(at) != "assistant":
            return False
        block = _block(self._plan, pieces[-1][-1])
        return block.kind is Kind.RESULT and block.server

    def split(self, at: int) -> None:
        """Part the first message off a run, so that something can stand behind it."""
        run = self._said[at]
        if run.last > run.lead:
            self._said[at : at + 1] = [Out(run.lead, run.lead, [], True), Out(run.lead + 1, run.last, [], True)]


def _join(plan: Plan, head: list[Out], done: Spliced) -> list[Out]:
    """Join agent texts that the cut made neighbours, inside of messages and across them."""
    joined: list[Out] = []
    for out in head:
        if _speaks(plan, out.lead):
            _joininside_of(plan, out, done)
            if joined and _speaks(plan, joined[-1].lead) and _neighbours(plan, joined[-1], out):
                last = joined[-1]
                last.pieces[-1] += out.pieces[0]
                last.pieces += out.pieces[1:]
                last.whole = False
                last.lost = True
                done.joined += 1
                continue
        joined.append(out)
    return joined


def _speaks(plan: Plan, number: int) -> bool:
    """An assistant message whose texts may be joined: not one of an earlier checkpoint turn."""
    return plan.request.messages[number].role == "assistant" and number not in plan.own


def _joininside_of(plan: Plan, out: Out, done: Spliced) -> None:
    if out.whole or len(out.pieces) < 2:
        return
    pieces = [out.pieces[0]]
    for piece in out.pieces[1:]:
        if piece[0][1] - pieces[-1][-1][1] > 1 and _joinable(plan, pieces[-1][-1], piece[0]):
            pieces[-1] += piece
            done.joined += 1
        else:
            pieces.append(piece)
    out.pieces = pieces


def _neighbours(plan: Plan, first: Out, second: Out) -> bool:
    """Whether the cut made the last text of one message and the first of the next one neighbours."""
    messages = plan.request.messages
    (m1, b1), (m2, b2) = first.pieces[-1][-1], second.pieces[0][0]
    if m2 == m1 + 1 and b2 == 0 and b1 == len(messages[m1].blocks) - 1:
        return False
    if not _same_wrapper(plan.request, messages[first.lead], messages[second.lead]):
        return False
    return _joinable(plan, (m1, b1), (m2, b2))


def _same_wrapper(request: Request, one: Message, other: Message) -> bool:
    if one.plain and other.plain:
        return True
    return _others(request, one.start, ("role", "content")) == _others(request, other.start, ("role", "content"))


def _joinable(plan: Plan, one: Key, other: Key) -> bool:
    first, second = _block(plan, one), _block(plan, other)
    if not (_is_words(plan, one, first) and _is_words(plan, other, second)) or not _may_move(plan, one, other):
        return False
    if wire.is_bare_text(plan.request, first) and wire.is_bare_text(plan.request, second):
        return True
    left, right = _other_members(plan, one, first), _other_members(plan, other, second)
    return left == right and left.get("citations", b"null") == b"null"


def _may_move(plan: Plan, one: Key, other: Key) -> bool:
    """Whether a text may leave its item for another one's (`Plan.items`)."""
    if plan.items is None or plan.items[one[0]][one[1]] == plan.items[other[0]][other[1]]:
        return True
    item = plan.items[other[0]][other[1]]
    mine = [(other[0], index) for index, of in enumerate(plan.items[other[0]]) if of == item]
    return all(key == other or key in plan.drop for key in mine)


def _is_words(plan: Plan, key: Key, block: Block) -> bool:
    return block.kind is Kind.TEXT or key in plan.speak


def _block(plan: Plan, key: Key) -> Block:
    return plan.request.messages[key[0]].blocks[key[1]]


def _other_members(plan: Plan, key: Key, block: Block) -> dict[str, bytes]:
    """The members of a text block beside its type, its text and its mark."""
    if key in plan.speak or plan.request.view[block.start] == '"':
        return {}
    return _others(plan.request, block.start, ("type", "text", _MARK))


def _others(request: Request, start: int, but: tuple[str, ...]) -> dict[str, bytes]:
    found = spans.members(request.view, start)[0]
    return {m.key: request.body[m.start : m.end] for m in found if m.key not in but}


def _behind_leading_thinking(plan: Plan, head: list[Out], tail: list[Out], systems: list[int]) -> None:
    """Kept texts directly before a checkpoint message that keeps its thinking go behind that thinking.

    With manual thinking the final assistant turn must start with thinking, and the API may read
    neighbours of one role as one turn (docs/wire.md, 1.3).
    """
    messages = plan.request.messages
    turn = tail[0]
    if turn.whole:  # a run: look into its first message
        rest = _runs(turn.lead + 1, turn.last + 1)
        blocks = range(len(messages[turn.lead].blocks))
        turn = Out(turn.lead, turn.lead, [[(turn.lead, index)] for index in blocks], True)
        tail[:1] = [turn, *rest]
    thinking = 0
    while thinking < len(turn.pieces) and _block(plan, turn.pieces[thinking][0]).kind is Kind.THINKING:
        thinking += 1
    if not thinking:
        return
    moved: list[list[Key]] = []
    until = turn.lead
    while head and messages[head[-1].lead].role == "assistant":
        if not _same_wrapper(plan.request, messages[head[-1].lead], messages[turn.lead]):
            break
        if _settled(plan, head[-1].lead):
            break
        last = max(key[0] for piece in head[-1].pieces for key in piece)
        ended = _block(plan, head[-1].pieces[-1][-1])
        if ended.kind is Kind.RESULT and any(last < number < until for number in systems):
            break  # a system message stands there rightly
        until = head[-1].lead
        moved = head.pop().pieces + moved
    if moved:
        turn.pieces[thinking:thinking] = moved
        turn.whole = False


# ---------------------------------------------------------------------------------------------- bytes


def _write(plan: Plan, outs: list[Out], join: str | None, done: Spliced) -> Spliced:
    messages, body = plan.request.messages, plan.request.body
    if not messages:
        done.body = body
        return done
    parts: list[bytes] = [body[: messages[0].start]]
    size = len(parts[0])
    joiner = spans.quote(join)[1:-1] if join is not None else b""
    number = 0
    while number < len(outs):
        out = outs[number]
        lead = out.lead
        if number:
            parts.append(body[messages[lead - 1].end : messages[lead].start] if lead else b",")
            size += len(parts[-1])
        if out.whole:
            last = out.last
            while number + 1 < len(outs) and outs[number + 1].whole and outs[number + 1].lead == last + 1:
                number += 1
                last = outs[number].last
            parts.append(body[messages[lead].start : messages[last].end])
        else:
            literal, added = _message(plan, out, joiner)
            done.added += [(size + start, size + end, key, filled) for start, end, key, filled in added]
            parts.append(literal)
        size += len(parts[-1])
        number += 1
    parts.append(body[messages[-1].end :])
    done.body = b"".join(parts)
    done.added.sort()
    return done


def _message(plan: Plan, out: Out, joiner: bytes) -> tuple[bytes, list[tuple[int, int, Key, bool]]]:
    request, body = plan.request, plan.request.body
    message = request.messages[out.lead]
    content, blocks = message.content, message.blocks
    before, behind = body[message.start : content.start], body[content.end : message.end]
    if message.string and len(out.pieces) == 1 and _all_strings(plan, out.pieces[0]):
        insides = joiner.join(body[_block(plan, key).start + 1 : _block(plan, key).end - 1] for key in out.pieces[0])
        return b"".join((before, b'"', insides, b'"', behind)), []
    opening, closing = b"[", b"]"
    if not message.string and blocks:
        opening, closing = body[content.start : blocks[0].start], body[blocks[-1].end : content.end]
    parts = [before, opening]
    size = len(before) + len(opening)
    added: list[tuple[int, int, Key, bool]] = []
    for number, piece in enumerate(out.pieces):
        owner, index = piece[0]
        own = request.messages[owner].blocks
        if number:
            parts.append(body[own[index - 1].end : own[index].start] if index else b",")
            size += len(parts[-1])
        if len(piece) == 1 and piece[0] in plan.add:
            literal, places = result_literal(request, own[index], plan.add[piece[0]])
            added += [(size + start, size + end, piece[0], filled) for start, end, filled in places]
        else:
            literal = _piece(plan, piece, joiner)
        parts.append(literal)
        size += len(literal)
    parts += (closing, behind)
    return b"".join(parts), added


def _all_strings(plan: Plan, piece: list[Key]) -> bool:
    return all(plan.request.messages[number].string for number, _ in piece)


def _piece(plan: Plan, piece: list[Key], joiner: bytes) -> bytes:
    request, body = plan.request, plan.request.body
    first = _block(plan, piece[0])
    if len(piece) == 1 and piece[0] not in plan.speak and request.view[first.start] != '"':
        return body[first.start : first.end]
    insides = []
    mark = b""
    for key in piece:
        block = _block(plan, key)
        span = wire.text_span(request, block)
        if block.marked and key not in plan.speak:
            mark = wire.member(request, block, _MARK) or mark
        insides.append(body[span.start : span.end])
    text = joiner.join(insides)
    if piece[0] in plan.speak or request.view[first.start] == '"':
        literal = text_literal(text)
        has_mark = None
    else:
        span = wire.text_span(request, first)
        literal = body[first.start : span.start] + text + body[span.end : first.end]
        has_mark = wire.member(request, first, _MARK) if first.marked else None
    return _marked(literal, has_mark, mark)


def text_literal(inside: bytes) -> bytes:
    """A text block around the inside of a string literal."""
    return b'{"type":"text","text":"' + inside + b'"}'


def _marked(literal: bytes, old: bytes | None, new: bytes) -> bytes:
    """A text block's literal whose cache mark is `new`, the last one of the texts in it."""
    if not new or new == old:
        return literal
    if old is None:
        return literal[:-1].rstrip() + b',"cache_control":' + new + b"}"
    found = next(m for m in spans.members(literal.decode("latin-1"), 0)[0] if m.key == _MARK)
    return literal[: found.start] + new + literal[found.end :]


def result_literal(
    request: Request, block: Block, additions: list[Addition]
) -> tuple[bytes, list[tuple[int, int, bool]]]:
    """A result with what is added to it (docs/wire.md, 10); the spans, cut out again, leave the input's bytes."""
    literal = request.body[block.start : block.end]
    found = next((m for m in spans.members(request.view, block.start)[0] if m.key == "content"), None)
    places: list[tuple[int, int, bool]] = []
    for addition in additions:
        behind = b"" if addition.source is None else b"\\n" + inside_of(request, addition.source)
        if found is None:
            at, extra = len(literal) - 1, b',"content":' + spans.quote(addition.text)
        else:
            end = found.end - block.start + sum(stop - begin for begin, stop, _ in places)
            if request.view.startswith("null", found.start):
                # No content: it becomes the content.
                whole = spans.quote(addition.text)
                begin = found.start - block.start
                literal = literal[:begin] + whole + literal[begin + 4 :]
                places.append((begin, begin + len(whole), addition.source is not None))
                continue
            if request.view[found.start] == '"':
                at, extra = end - 1, spans.quote("\n\n" + addition.text)[1:-1] + behind
            else:
                empty = not spans.elements(request.view, found.start)[0]
                text = text_literal(spans.quote(addition.text)[1:-1] + behind)
                at, extra = end - 1, text if empty else b"," + text
        literal = literal[:at] + extra + literal[at:]
        places.append((at, at + len(extra), addition.source is not None))
    return literal, places


def inside_of(request: Request, source: Block) -> bytes:
    """The texts of a result's content as the inside of one string literal, each copied as it stands."""
    raw = next((m for m in spans.members(request.view, source.start)[0] if m.key == "content"), None)
    if raw is None:
        return b""
    if request.view[raw.start] == '"':
        return request.body[raw.start + 1 : raw.end - 1]
    insides = []
    for start, _ in spans.elements(request.view, raw.start)[0]:
        members = {m.key: m for m in spans.members(request.view, start)[0]}
        if "text" in members and request.view[members["text"].start] == '"':
            insides.append(request.body[members["text"].start + 1 : members["text"].end - 1])
        else:
            kind = (
                spans.decode(request.body[members["type"].start : members["type"].end])
                if "type" in members
                else "block"
            )
            insides.append(spans.quote(f"[{kind}: recall it by the address]")[1:-1])
    return b"\\n".join(insides)
