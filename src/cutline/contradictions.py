"""Where the agent's own words say two opposite things, and nothing between them or behind them says why.

Law: pure; words and calls in their order and a document go in, a few pairs of claims come out. Nothing is understood:
two claims are held against each other only where they speak of the same things in the same words, and one denies what
the other says, or gives another number. That a later claim takes an earlier one's place is how work goes: a change of
anything, a look at what the claim is about, a word such as "now" or "it turned out" between them explains it, and so
does one said later. It errs towards silence. It knows English. docs/checkpoint.md has the measured rates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from . import checkpoint, narration
from .blocks import Author, Event, Said, ToolCall
from .checkpoint import Document
from .specifics import folded, lazily, stem, texts, value_of
from .wire import anthropic as wire

_LONGEST = 40_000  # characters of one text that are looked at
_CLAUSE_LENGTH = (6, 240)  # characters; what is longer is no claim that is said twice
_REPEATED = 50  # claims of one thing that are compared, the last ones
_RESULT = 20_000  # characters of a result that are searched for a claim's words

# What is no claim of its own: code, quotations, tables.
_FENCED = lazily(r"(?ms)^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)|^[ \t]*[>|][^\n]*$")
_OPAQUE = lazily(r"`([^`\n]{1,200})`|\"([^\"\n]{1,200})\"|\]\([^)\n]*\)")
_HEADING = lazily(r"[ \t]*(?:#{1,6}\s+(.+)|\*\*([^*\n]{1,80})\*\*:?[ \t]*)")
_LABEL = lazily(r"[ \t]*(?:[-*+]|\d+[.)])?[ \t]*\*\*([^*\n]{1,80})\*\*")
_SENTENCE = lazily(r"(?<=[.!?;])[*_)\]]*\s+|(?<!\s)\s+[\u2014\u2013-]+\s+|\u2014|(?<!\s)\s*\u2192\s*|(?<=\w:)\s+(?=\S)")
_CLAUSE = lazily(r",\s+|(?<!\s)\s+(?:\(|(?:but|and|whereas|although)\s+)|\)")
# Behind a comma or an "and": a clause with a subject of its own, and words that only say where or when.
_SUBJECT = lazily(r"\s*(?:the|a|an|all|no|none|every|both|its|our|their|there|_\w+|[\w./-]*\d)\b", re.I)
_WHERE = lazily(
    r"\s*(?:on|in|with|without|under|for|at|by|from|during|against|using|across|via|through|within|outside|inside|"
    r"between|above|below|to|of|as|like|not)\b",
    re.I,
)
_PRONOUN = lazily(r"(?:it|this|that|they|these|those|he|she|which|who|one)\b(?! (?:run|time)\b)")

_NAMING = lazily(r"([^:]{2,80}):[*_]*\s*\Z")

# A word that makes a clause something else than a plain claim.
_UNREAL = lazily(
    r"\?|\b(?:if|whether|when|whenever|unless|until|once|would|should|could|might|may|must|shall|will|can|let|lets|"
    r"let's|want\w*|need\w*|expect\w*|suspect\w*|probably|likely|perhaps|maybe|seem\w*|appear\w*|hypothes\w*|assum\w*|"
    r"suppos\w*|think|believe|guess\w*|unclear|unsure|unknown|try|trying|going to|make sure|ensure\w*|verify|check|"
    r"checking|verifying|confirm|see|either|or|possibl\w+|plausibl\w+|as if|in case|to be|rather than|example|e\.g|"
    r"instead of|other|others|rest|except|apart|besides|remaining|most|mostly|some|several|many|few|partly|same|"
    r"another|only|about|around|roughly|approximately|nearly|almost|over|up to|at least|at most|each|per|next|"
    r"more|less|fewer|than|average|typically|usually|often|sometimes)\b|[~\u2248\u2265\u2264+]\s?\d|\d\+"
)
# A word that says that something changed, or that an earlier word was wrong.
_TURNED = lazily(
    r"\b(?:now|no longer|any ?more|after\w*|before\w*|turn(?:s|ed) out|actually|in fact|instead|fix\w*|again|"
    r"was wrong|were wrong|i was|we were|mistake\w*|mistaken\w*|misread\w*|slip|correct(?:ed|ion|ing)|earlier|"
    r"previous\w*|original\w*|initial\w*|at first|first|so far|until|used to|since|this time|meanwhile|still|yet|"
    r"re-?run|re-?ran|re-?test\w*|re-?measur\w*|re-?check\w*|went from|down from|up from|from \d\S* to|became|becomes|"
    r"changed?|changes|old|new|then|finally|later|on second|retract\w*|scratch that|not \d+|rather|however|updated?|"
    r"resolved|repaired|solved|with(?:out)? (?:the|this|that|my) \w+|on main|baseline|stale|outdated|final)\b"
)
_VERB = lazily(r"\b(?:is|are|was|were|do|does|did|has|have|had)\b|n't\b")
_PAST = lazily(r"\b(?:was|were|did|had|been|ran|came|went|showed|broke|\w{3,}ed)\b")
_DEED = lazily(
    r"(?:i|we|i've|we've|have|has|just|also|all)?\s*(?:add|fix|creat|updat|remov|delet|chang|renam|replac|commit|push|"
    r"mov|wrote|writ|found|read|ran|made|built|split|extract|implement|convert|dropp?|check|verifi|refactor|clean|"
    r"address|resolv|complet|mark|rewrote|install|bump|appli|cover|us|pick|start|stopp?|kill|open|clos)(?:ed|d|ing)?\b"
)

# Words that say one thing of two: what they are forms of, those that affirm it, those that deny it.
_FORMS = """
pass: pass passing green succeed / fail failing failure red
reproduce: reproduce reproduced reproducible repro reproduction /
cause: cause caused culprit blame responsible /
work: work working / broken break
exist: exist present / missing absent nonexistent
use: use used / unused
safe: safe / unsafe
valid: valid / invalid
enable: enabled enable / disabled disable
relate: related relate / unrelated
correct: correct / wrong incorrect
determine: deterministic / nondeterministic non-deterministic
support: supported / unsupported
need: necessary / unnecessary
same: identical / differ different
affect: affected affect / unaffected
clean: clean / dirty
"""
_TIMELESS = frozenset(("reproduce", "cause"))  # what happened once goes on being so: their tense says nothing
_DENIES = frozenset(("not", "no", "never", "none", "neither", "nor", "nothing", "0"))
_GENERIC_WORDS = """test tests suite bug issue problem premise these errors error thing everything root main real actual
cases case results reported claim"""
_STOP_WORDS = """a an the is are was were be been being am do does did done has have had it its this that these those
they them their there here i we you my our your he she of in on at to for with by from as into and or but also all every
any both whole full entire just very really simply indeed so too well yes ok okay good great confirmed verified result
note now still currently already again measured what who"""
_HEAD_WORDS = """summary summaries outcome outcomes status verification finding findings check checks done facts
overall conclusion measurement measurements numbers so in short"""
_NAMED_WORDS = """line lines step phase task pr issue version v section port python node go commit iteration day round
option part item stage level tier batch attempt page chapter case no number exit code status http error rule figure
column row test bug id ticket release build run index layer at"""
_DIGITS = "zero one two three four five six seven eight nine ten eleven twelve"


def _signs() -> dict[str, tuple[str, bool]]:
    found: dict[str, tuple[str, bool]] = {}
    for line in _FORMS.strip().splitlines():
        name, _, words = line.partition(":")
        affirming, _, denying = words.partition("/")
        found |= {stem(word): (name, True) for word in affirming.split()}
        found |= {stem(word): (name, False) for word in denying.split()}
    return found


_SIGNS = _signs()
_GENERIC = frozenset(map(stem, _GENERIC_WORDS.split()))
_STOP = frozenset(_STOP_WORDS.split())
_NAMED = frozenset(_NAMED_WORDS.split())  # a number behind one of these is a name, no figure
_PLACES = frozenset(("on", "in", "with", "under", "from", "since"))
_ARTICLES = frozenset(("the", "a", "an"))  # behind one "missing" tells which, and claims nothing
_HEADS = frozenset(map(stem, _HEAD_WORDS.split()))  # headings that say nothing of what stands under them
_SPELT = {word: str(number) for number, word in enumerate(_DIGITS.split())}
_NUMBER = lazily(r"(-?\d[\d,]*(?:\.\d+)?)(%|ms|s|us|ns|kb|mb|gb|k|m|x|px|b)?")


@dataclass(frozen=True, slots=True)
class Claim:
    """One clause that claims something.

    Attributes:
        text: the clause as it was written, on one line.
        head: the heading or label that it stands under.
        at: index of its event among words and calls; past the last one for the document.
        part: number of its sentence in that text.
        address: the call before it: what it was said after; "" before the first call.
        in_document: it stands in a checkpoint's document.
        about: what it speaks of: stems of its words, and the total of "12 of 40".
        predicate: which of the words that say one thing of two it uses; "" for none.
        affirms: it says so, and does not deny it.
        figures: its numbers, each with its unit.
        past: it tells of something past.
    """

    text: str
    head: str
    at: int
    part: int
    address: str
    in_document: bool
    about: frozenset[str] = frozenset()
    predicate: str = ""
    affirms: bool = True
    figures: tuple[tuple[str, str], ...] = ()
    past: bool = False


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two claims of which one can't stand, the earlier one first."""

    first: Claim
    second: Claim


@dataclass(frozen=True, slots=True)
class _Text:
    """One text with its sentences."""

    sentences: tuple[str, ...]
    claims: tuple[Claim, ...]


def find(whole: Sequence[Event], document: Document | None = None, since: int = 0) -> list[Contradiction]:
    """The pairs of claims that words and a document leave standing both ways, the last said first.

    Args:
        whole: words and calls of the whole record, in order; earlier checkpoints' documents are read in their place.
        document: the one that is about to be stored; None to judge by the words alone.
        since: index from which a pair's later claim has to come: earlier ones were spoken of at their own checkpoint.
    """
    history = _History(whole, document)
    kept: dict[tuple[str, frozenset[str]], list[Claim]] = {}
    for text in history.texts.values():
        for claim in text.claims:
            kept.setdefault((claim.predicate, claim.about), []).append(claim)
    # "Reproduced." says of what only where there is one thing to reproduce.
    bare, named = kept.get(("reproduce", frozenset())), [key for key in kept if key[0] == "reproduce" and key[1]]
    if bare and len(named) == 1:
        kept[named[0]] = sorted(kept[named[0]] + bare, key=lambda claim: (claim.at, claim.part))
    found = [pair for claims in kept.values() if (pair := history.standing(claims[-_REPEATED:], since))]
    return sorted(found, key=lambda pair: (-pair.second.at, -pair.second.part))


class _History:
    """Words and calls, ready to be asked what lies between two claims."""

    def __init__(self, whole: Sequence[Event], document: Document | None) -> None:
        self.events = whole
        self.texts: dict[int, _Text] = {}
        self._looked: dict[int, str] = {}
        address = ""
        for at, event in enumerate(whole):
            if isinstance(event, Said):
                if event.author is Author.AGENT:
                    self.texts[at] = read(event.text, at, address)
            elif words := narration.spoken(event.name, event.arguments):
                self.texts[at] = read(words, at, address)
            elif wire.is_stored(event):
                stored = checkpoint.read(value_of(event.arguments))
                if isinstance(stored, Document):
                    self.texts[at] = read(_written(stored), at, address, True)
            elif not narration.is_own(event.name):
                address = event.address
        if document is not None:
            self.texts[len(whole)] = read(_written(document), len(whole), address, True)

    def standing(self, claims: Sequence[Claim], since: int) -> Contradiction | None:
        """The last two claims of one thing that oppose each other, if neither they nor what came after is explained."""
        for later in range(len(claims) - 1, 0, -1):
            second = claims[later]
            if second.at < since:
                return None
            for first in reversed(claims[:later]):
                if self._explained(first, second):
                    if first is claims[later - 1]:
                        return None  # what was said before is overtaken
                    break
                if opposed(first, second):
                    return Contradiction(first, second)
        return None

    def _explained(self, first: Claim, second: Claim) -> bool:
        """Whether something between two claims, or said later, may be why the second differs."""
        words = first.about | second.about | {first.predicate, *(number for number, _ in first.figures)}
        generic = not (first.about and second.about)
        for at in range(first.at + 1, second.at):
            event = self.events[at]
            if isinstance(event, ToolCall):
                if self._bears(at, words, generic):
                    return True
            elif event.author is Author.HUMAN and (generic or _shares(event.text, words)):
                return True
        return self._turned(first, second, words)

    def _turned(self, first: Claim, second: Claim, words: Iterable[str]) -> bool:
        """Whether words behind the first claim tell of a change or take it back."""
        known = set(_TURNED().findall(self.texts[first.at].sentences[first.part].lower()))
        for at, text in self.texts.items():
            for part, sentence in enumerate(text.sentences):
                if (at, part) <= (first.at, first.part):
                    continue
                here = (at, part) == (second.at, second.part)
                beside = at == second.at and not second.in_document and part < second.part
                near = beside and (first.at == at or part == second.part - 1)
                # What both claims say ("all pass now") tells nothing of a change from one to the other.
                told = set(_TURNED().findall(sentence.lower())) - (known if here else set())
                if told and (here or near or _shares(sentence, words)):
                    return True
        return False

    def _bears(self, at: int, words: Iterable[str], generic: bool) -> bool:
        """Whether a call may have changed what is claimed, or has looked at it."""
        event = self.events[at]
        assert isinstance(event, ToolCall)
        if narration.is_own(event.name):
            return False
        if generic or changes(event):
            return True
        looked = self._looked.get(at)
        if looked is None:
            looked = folded(" ".join(texts(value_of(event.arguments))) + " " + (event.result or "")[:_RESULT])
            self._looked[at] = looked
        return _shares(looked, words)


def _shares(text: str, words: Iterable[str]) -> bool:
    lowered = text.lower()
    return any(re.search(rf"(?<![^\W_]){re.escape(word)}", lowered) for word in words if word)


_LOOKS = frozenset(("read", "grep", "glob", "ls", "todowrite", "todoread", "notebookread", "toolsearch"))
_LOOKING = lazily(
    r"(?:cd|cat|ls|grep|rg|find|head|tail|wc|stat|file|which|pwd|tree|jq|awk|sort|uniq|date|ps|env|echo|printf|cut|"
    r"diff|du|df|sed -n|git (?:log|show|status|diff|blame|grep|branch|rev-parse)|(?:python3? -m )?pytest|"
    r"go (?:test|vet)|cargo (?:test|check)|npm (?:run )?test|true|sleep)\b"
)
_STAGE = lazily(r"&&|\|\|?|;|\n")


def changes(call: ToolCall) -> bool:
    """Whether a call may have changed something: all but those known to look only."""
    value = value_of(call.arguments)
    command = value.get("command") if isinstance(value, dict) else None
    if not isinstance(command, str):
        return call.name.lower() not in _LOOKS
    stages = [stage.strip() for stage in _STAGE().split(command) if stage.strip()]
    return re.search(r"(?<![\d&])>(?!\s*(?:&|/dev/null))", command) is not None or not all(
        map(_LOOKING().match, stages)
    )


def _written(document: Document) -> str:
    """What a document claims of the present: what went wrong and what led nowhere is told as past."""
    return "\n\n".join((document.done, document.open, *(fact.claim for fact in document.facts)))


# Claims


def read(text: str, at: int = 0, address: str = "", in_document: bool = False) -> _Text:
    """The sentences of a text, and what they claim; the other arguments are the claims' own."""
    text = text[:_LONGEST].replace("\u2019", "'").replace("\u201c", '"').replace("\u201d", '"')
    plain = _OPAQUE().sub(_masked, _FENCED().sub(_blanked, text))
    sentences: list[str] = []
    claims: list[Claim] = []
    head, place = "", 0
    for line in filter(str.strip, plain.splitlines()):
        heading = _HEADING().fullmatch(line)
        if heading:
            head = folded(heading[1] or heading[2])
            sentences.append(line)
            continue
        label = _LABEL().match(line)
        under = folded(label[1]) if label else head
        for sentence in _SENTENCE().split(line):
            if not sentence or sentence.isspace():
                continue
            clauses = [] if sentence.rstrip("*_ ").endswith("?") else _CLAUSE().split(sentence)
            # What a claim is said of may stand in its heading, in "On arm64, …", or before its "and".
            scope = _words_of(" ".join([under, *filter(_WHERE().match, clauses)])) - _HEADS
            for number, clause in enumerate(clauses):
                place = plain.index(clause, place)
                if number and _WHERE().match(clause):
                    continue  # "…, not in the reader" says where, and claims nothing by itself
                held = Claim(text[place : place + len(clause)], under, at, len(sentences), address, in_document)
                if claim := _claimed(clause, held):
                    lead = frozenset[str]() if not number or _SUBJECT().match(clause) else _words_of(clauses[0])
                    claims.append(replace(claim, about=claim.about | scope | lead))
            if before := _NAMING().search(sentence):
                under = folded(before[1])
            sentences.append(sentence)
    return _Text(tuple(sentences), tuple(claims))


def _words_of(text: str) -> frozenset[str]:
    """Stems of the words that name things."""
    words = (word.strip("*()[]{}\"'.,;:!") for word in text.lower().split())
    names = ((word, stem(re.sub(r"\W", "_", word).strip("_"))) for word in words if word)
    return frozenset(
        root
        for word, root in names
        if root and word not in _STOP | _DENIES and root not in _GENERIC and root not in _SIGNS
    )


def _blanked(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _masked(found: re.Match[str]) -> str:
    """Code and quotations as one word of the same length: nothing in them is a claim, but a claim may be about them."""
    inner = found[1] or found[2]
    return " _" + re.sub(r"\W", "_", inner) if inner else " " * len(found[0])


def _claimed(clause: str, held: Claim) -> Claim | None:
    """What a clause claims, put into the claim that says where it stands; None where it claims nothing plainly."""
    text = re.sub(r"\s+", " ", clause).strip(" *#-.,;:!")
    if not _CLAUSE_LENGTH[0] <= len(text) <= _CLAUSE_LENGTH[1]:
        return None
    lowered = text.lower().replace("cannot", "can not").replace("n't", " not")
    lowered = re.sub(r"\b(?:can|could) not (?:be )?(?=reproduc)", "not ", lowered)
    lowered = re.sub(r"(?<![\w./-])(\d+)\s*(?:/|out of|of(?: the| all)?)\s*(\d+)\b(?![./-]\w)", r"\1 of \2", lowered)
    lowered = re.sub(r"(\d) (%|ms|s|kb|mb|gb)(?!\w)", r"\1\2", lowered)
    if _UNREAL().search(lowered) or _DEED().match(lowered):
        return None
    of_something = _PRONOUN().match(lowered) is not None  # said before it, and not known here
    words = [word.strip("*()[]{}\"'.,;:!") for word in lowered.split()]
    affirms, predicate = True, ""
    about: set[str] = set()
    figures: list[tuple[str, str]] = []
    before = ""
    for place, word in enumerate(words):
        word = _SPELT.get(word, word)
        if not word:
            continue
        number = _NUMBER().fullmatch(word)
        if number:
            if before in _NAMED or (not number[2] and stem(before) in about and not before.endswith(("s", "ed"))):
                about.add(f"{before}{word}")
            elif before in _PLACES and "." in word:
                about.add(f"{before}{word}")  # a release
            elif before == "of" and place > 1:
                about.add(f"of{word}")
            elif word == "0":
                affirms = not affirms
                figures.append(("0", ""))
            else:
                figures.append((number[1].replace(",", ""), number[2] or ""))
        elif word in _DENIES:
            affirms = not affirms
        else:
            name = re.sub(r"\W", "_", word).strip("_")
            root = stem(name)
            sign = None if word.startswith("_") else _SIGNS.get(root) or _SIGNS.get(word)
            if sign and not predicate and not (sign[0] == "exist" and before in _ARTICLES):
                predicate = sign[0]
                affirms = affirms is sign[1]
            elif name and word not in _STOP and root not in _GENERIC:
                about.add(root)
        before = word
    if len(figures) > 1 and any(number == "0" for number, _ in figures):
        return None
    if (not predicate and len(about) < 2) or (of_something and predicate != "reproduce"):
        return None
    return replace(
        held,
        text=re.sub(r"\s+", " ", held.text).strip(" *#-.,;:!"),
        about=frozenset(about),
        predicate=predicate,
        affirms=affirms,
        figures=tuple(figures),
        past=_PAST().search(lowered) is not None,
    )


def opposed(first: Claim, second: Claim) -> bool:
    """Whether of two claims about the same only one can stand."""
    if first.at == second.at and (first.head != second.head or first.part == second.part):
        return False  # of another thing, or set against each other in one sentence
    if first.past != second.past and first.predicate not in _TIMELESS:
        return False
    one, other = _counted(first), _counted(second)
    if one and other:
        if first.affirms != second.affirms or len(one) != len(other):
            return False
        differing = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
        # Without a subject "40 pass" may be said of another suite.
        return len(differing) == 1 and bool(first.about) and not _rounded(*differing[0])
    if first.affirms == second.affirms:
        return False
    if one or other:
        # "38 pass" leaves room for "2 fail"; "2 fail" leaves none for "all pass".
        return bool(first.predicate) and not (first if one else second).affirms
    # "Ghost files", as of a heading, claims nothing.
    texts = (first.text.lower(), second.text.lower())
    return bool(first.predicate) or (any(map(_VERB().search, texts)) and all(text.count(" ") > 1 for text in texts))


def _counted(claim: Claim) -> tuple[tuple[str, str], ...]:
    return () if claim.figures == (("0", ""),) else claim.figures


def _rounded(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two numbers are one, more or less exactly told, or are told in different units."""
    if one[1] != other[1]:
        return True
    places = min(len(number.partition(".")[2]) for number in (one[0], other[0]))
    return abs(float(one[0]) - float(other[0])) <= 0.5001 / 10**places if "." in one[0] + other[0] else False
