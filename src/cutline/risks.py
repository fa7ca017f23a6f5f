"""What a checkpoint would lose or leave unproven: holes, craft saved nowhere, claims nothing shows or that disagree.

Law: pure; a history's events and a document go in, short lines come out, the weightiest first. It errs towards
silence: a risk is named only where the record speaks plainly, because it is handed back to the agent once, as
a refusal, and each costs a call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from . import contradictions, evidence, narration, notice
from .blocks import Author, Event, Said, ToolCall
from .checkpoint import Document, Fact
from .specifics import folded, specifics, texts, value_of
from .trace import unreminded
from .wire import anthropic as wire

_HOLES, _CRAFT, _CLAIMS, _PAIRS = 4, 3, 6, 3  # how many of each are listed
_SHORT = 2_000  # characters up to which a result is an answer, not a document
_LOOKED_AT = 8_000  # characters of a command; a longer one is a file that is written
_LONG = 160  # characters from which a command with several stages is craft
_SHOWN = 300  # characters of a command that are handed back; its address gives the rest
_STAGE = re.compile(r"\||&&|;|\b(?:awk|sed|perl|jq|xargs|find|python3? -c|grep -[a-zA-Z]*[oP])\b")
_WRITING = re.compile(r"(?<![\w./-])(?:cat|tee)\s[^\n|]*?(?:(?<![\d&])>(?!&|\s*/dev/null)|\btee\b)|<<-?\s*['\"]?\w+")
_BLANKS = re.compile(r"\s+")
# A command reached by trying: at least three versions near each other, one of which failed before one that worked.
_VERSIONS, _ALIKE, _APART, _OPEN = 3, 0.6, 6, 12  # versions, share in common, calls between two, commands compared
_WORTH = 60  # characters of a command that is worth saving though it is not long
_WORDS_COMPARED = 400
_TOKEN = re.compile(r"\w+|[^\w\s]")
_THERE = re.compile(r"\s*cd\s+(?:\"[^\"]*\"|'[^']*'|[^\s;&|]+)[ \t]*(?:&&|;|\n)\s*(?=\S)")
# Behind a command: shows less of the same answer.
_VIEW = re.compile(r"(?:\s?2>&1|\s?\|\s?(?:head|tail|less|cat|Select-Object)\b[^|;&\n]*+)++\s?\Z")
_COMPOSED = re.compile(r"[|;\n]|&&|\$\(|\$\w+:?\w*\s*=|'[^'\n]{8,}'|\"[^\"\n]{8,}\"")
_ROUTINE = re.compile(
    r"(?:\(?\s*(?:source|\.) \S+ && |\w+=\S+ |(?:uv|poetry|bundle|npx|python3? -m)(?: run| exec)? )*"
    r"(?:pytest|tox|jest|vitest|go (?:test|build|vet)|cargo|mix|gradle\w*|mvn|make|tsc|mypy|ruff|eslint|black|"
    r"prettier|(?:npm|pnpm|yarn|bun|uv|mise|just) (?:run|test|install|ci|sync|add|build|exec)|pip install|"
    r"git (?:commit|add|push|status|checkout|log|diff|show)|gh (?:pr|issue|run))\b"
    # Searches and reads beside each other: each asks something of its own.
    r"|(?:(?:grep|rg|cat|ls|head|tail|wc|sed -n|find|echo)\b(?:[^|;&\n'\"]|'[^']*'|\"[^\"]*\")*+(?:;|&&|\n|\Z)\s*)+\Z"
)
# Nothing but looking, however long its patterns: another look gives the same.
_LOOKS = re.compile(
    r"(?:(?:cd|grep|egrep|rg|cat|ls|head|tail|wc|sed -n|echo|find(?![^|;&\n]*\s-(?:exec|delete|ok)))\b"
    r"(?:[^|;&\n'\"\\]|\\.|(?<=>)&|'[^']*'|\"(?:[^\"\\]|\\.)*\")*+(?:\|\||&&|[|;\n]|\Z)\s*)++\Z",
    re.S,
)
_SILENT = re.compile(r"(?i:\(?[\w ]{0,40}no (?:output|content|matches)[\w ]{0,20}\)?)?")
_COMMITS = re.compile(r"(?:[^\n;]*?&& *)?(?:git commit|gh pr)\b")  # long by the words of its message
_PRINTS = re.compile(r"(?:grep|rg|awk|jq|find|sort|comm|sed -n)\b")  # says nothing where it finds nothing
_WENT_WRONG = re.compile(
    r"\bexit(?:ed)?(?: with)?(?: status| code)?[:= ]+[1-9]|\bTraceback \(|(?i:syntax error|command not found|"
    r"no such file|unrecognized|unknown (?:option|flag|argument)|invalid |\busage: |permission denied|parse error|"
    r"unterminated|unmatched|unexpected )"
)


@dataclass(frozen=True, slots=True)
class Risks:
    """What is at risk.

    Attributes:
        unproven: claims marked as measured that no recorded call or result shows.
        both_ways: pairs of claims of which one can't stand.
        craft: commands that were long, or reached by trying, and stand in no file that was written.
        holes: calls with specifics in their results which no words carry.
    """

    unproven: tuple[str, ...]
    both_ways: tuple[str, ...]
    craft: tuple[str, ...]
    holes: tuple[str, ...]

    @property
    def standing(self) -> tuple[str, ...]:
        """What stays unproven once the document is stored, and is flagged in it."""
        return self.unproven + self.both_ways

    @property
    def lines(self) -> tuple[str, ...]:
        """All of them, claims first: a false one does the most harm."""
        return self.standing + self.craft + self.holes


def find(stretch: Sequence[Event], whole: Sequence[Event], document: Document) -> Risks:
    """What a document, written now, would leave behind.

    Args:
        stretch: words and calls since the last checkpoint, in order, up to and with the words beside this one.
        whole: words and calls of the whole record: a claim may rest on an earlier call.
        document: the checkpoint's document.
    """
    calls = [event for event in stretch if isinstance(event, ToolCall) and not narration.is_own(event.name)]
    every = [event for event in whole if isinstance(event, ToolCall) and not narration.is_own(event.name)]
    said = folded(
        "\n".join(event.text for event in stretch if isinstance(event, Said) and event.author is Author.AGENT)
    )
    said += " " + folded(" ".join((document.done, document.open, document.went_wrong, document.next)))
    said += " " + folded(" ".join([fact.claim + " " + fact.evidence for fact in document.facts]))
    said += " " + folded(" ".join(document.dead_ends))
    return Risks(
        tuple(_unproven(document.facts, every))[:_CLAIMS],
        tuple(_both_ways(stretch, whole, document)),
        tuple(_craft(calls, document, said))[:_CRAFT],
        tuple(_holes(stretch, calls, said))[:_HOLES],
    )


def _unproven(facts: Sequence[Fact], calls: Sequence[ToolCall]) -> list[str]:
    record = evidence.Record(calls)
    found: list[str] = []
    for fact in facts:
        if len(found) < _CLAIMS and fact.basis == "measured" and (why := record.doubt(fact)):
            found.append(f"marked measured, but {why}: “{_short(fact.claim, 120)}”")
    return found


def _both_ways(stretch: Sequence[Event], whole: Sequence[Event], document: Document) -> list[str]:
    told = whole or stretch
    found = contradictions.find(told, document, len(told) - len(stretch))
    return [f"said both ways: {_said(pair.first)}, and {_said(pair.second)}" for pair in found[:_PAIRS]]


def _said(claim: contradictions.Claim) -> str:
    where = f"after {claim.address}" if claim.address else "before any call"
    return f"“{_short(claim.text, 120)}” ({'in a document' if claim.in_document else where})"


def _craft(calls: Sequence[ToolCall], document: Document, said: str) -> list[str]:
    """Commands that were reached by trying, then long ones, that were not saved: each is lost with its call."""
    written = [_held(call) for call in calls if _saves(call)]
    tried = sorted(tries(calls), key=len, reverse=True)
    found: list[str] = []
    seen: set[str] = set()
    chosen = [(versions[-1], f"reached in {len(versions)} tries and ") for versions in tried]
    for call, how in chosen + [(call, "") for call in reversed(calls) if _is_long(call)]:
        command = _command(call)
        flat = folded(command)
        if flat in seen or flat in said or any(recipe in command for recipe in document.recipes if recipe):
            continue
        seen.add(flat)
        if not any(_stands_in(flat, text) for text in written):
            found.append(f"a command that is {how}saved in no file ({call.address}): {_short(command, _SHOWN)}")
        if how:  # its earlier versions are no craft of their own
            seen |= {folded(_command(version)) for version in next(each for each in tried if each[-1] is call)}
    return found


def _is_long(call: ToolCall) -> bool:
    command = _command(call)
    stages = len(_STAGE.findall(command)) if len(command) >= _LONG else 0
    routine = _WRITING.search(command) or _COMMITS.match(command) or _LOOKS.match(command.strip())
    return stages >= 3 and not routine and not call.error


def tries(calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
    """Versions of one command, of which one failed and a later one, the last of each list, worked.

    Where a file was edited between two runs, it was the code that was tried and not the command. Runs of tests,
    builds and version control are routine: what they answer changes, and nobody needs them saved.
    """
    families: list[list[tuple[int, ToolCall, list[str]]]] = []
    for number, call in enumerate(calls):
        command = _bare(_command(call))
        if not command:
            if _saves(call):
                families.append([])  # nothing before it is carried on
            continue
        if _WRITING.search(command) or _ROUTINE.match(command) or len(command) < _WORTH // 2:
            continue
        words = _TOKEN.findall(command)[:_WORDS_COMPARED]
        for family in reversed(families[-_OPEN:]):
            if not family:
                families.append([(number, call, words)])
                break
            before, _, others = family[-1]
            if number - before <= _APART and words[:1] == others[:1] and _alike(words, others):
                family.append((number, call, words))
                break
        else:
            families.append([(number, call, words)])
    found = []
    for family in families:
        versions = [call for _, call, _ in family]
        worked = [not _went_wrong(call) for call in versions]
        if True not in worked:
            continue
        last = len(worked) - worked[::-1].index(True)  # one past the last that worked
        command = _bare(_command(versions[last - 1]))
        different = {_bare(_command(call)) for call in versions[:last]}
        if (
            len(different) >= _VERSIONS
            and False in worked[:last]
            and len(command) >= _WORTH
            and _COMPOSED.search(command)
        ):
            found.append(versions[:last])
    return found


def _bare(command: str) -> str:
    """A command without the `cd` before it and without what only shows less of its answer."""
    there = _THERE.match(command)
    return _VIEW.sub("", command[there.end() if there else 0 :]).strip()


def _alike(one: list[str], other: list[str]) -> bool:
    match = SequenceMatcher(None, one, other, autojunk=False)
    return match.real_quick_ratio() >= _ALIKE and match.quick_ratio() >= _ALIKE and match.ratio() >= _ALIKE


def _went_wrong(call: ToolCall) -> bool:
    result = (call.result or "").strip()
    silent = _SILENT.fullmatch(result) is not None and _PRINTS.match(_bare(_command(call))) is not None
    return call.error or call.result is None or silent or _WENT_WRONG.search(result[:_SHORT]) is not None


def _stands_in(flat: str, text: str) -> bool:
    """Whether a command stands in a written text, as it is or with other places and line breaks."""
    if flat in text:
        return True
    words = set(re.findall(r"[^\W_]{3,}", flat))
    return len(words) >= 5 and sum(word in text for word in words) >= 0.75 * len(words)


def _saves(call: ToolCall) -> bool:
    head = call.arguments[:400]
    return (
        b'"content"' in head
        or b'"new_string"' in call.arguments
        or b'"file_text"' in head
        or (_WRITING.search(_command(call)) is not None)
    )


def _command(call: ToolCall) -> str:
    value = value_of(call.arguments)
    command = value.get("command") if isinstance(value, dict) else None
    return command[:_LOOKED_AT] if isinstance(command, str) else ""


def _holes(stretch: Sequence[Event], calls: Sequence[ToolCall], said: str) -> list[str]:
    """Unnarrated commands and failures whose short result holds specifics that stand nowhere in the agent's words.

    A file that was read or searched can be read again; a command's answer belongs to its moment.
    """
    found = []
    for number in reversed(narration.review(stretch).holes):
        call = calls[number]
        if call.result is None or not (_command(call) or call.error) or call.result.startswith(wire.REFUSALS):
            continue
        result = unreminded(call.result)
        if len(result) > _SHORT:
            continue
        new = [name for name in specifics(result) if name.lower() not in said]
        if len(new) >= 2:
            found.append(f"not narrated: {notice.line(call)}")
    return found


def _held(call: ToolCall) -> str:
    """A call's words and its result's, on one line, in lower case."""
    return folded(" ".join(texts(value_of(call.arguments))) + " " + (call.result or ""))


def _short(text: str, size: int) -> str:
    clean = _BLANKS.sub(" ", text).strip()
    return clean if len(clean) <= size else clean[: size - 1] + "…"
