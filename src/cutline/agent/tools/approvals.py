"""Whether a call may run: by the human's rules, the call and the place; nothing that a tool or a model says counts.

Law: pure, but that links are followed. A deny rule wins over everything; what is outside the working tree or dangerous
(`dangers`) is asked for in every mode, whatever is allowed; an allow rule covers a call only as a whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from . import dangers
from .commands import Simple, Unclear, taken_apart
from .files import locate
from .git_dangers import gits_own
from .tool import Place, Tool

Mode = Literal["ask", "edits", "auto"]
Word = Literal["allow", "ask", "deny"]
MODES: tuple[Mode, ...] = ("ask", "edits", "auto")
_OWN = frozenset({"job_end", "job_output"})  # they reach this session's own jobs and nothing else


@dataclass(frozen=True, slots=True)
class Rules:
    """What the human decided beforehand.

    Attributes:
        mode: "ask" for everything but reading, "edits" lets files of the tree be changed too, "auto" asks for nothing
            but what is always asked for.
        allow: patterns of calls that need no question: `bash(git status*)`, `edit(src/*)`, `mcp__files__*`. A name
            alone covers all its calls; in parentheses stands the command, or the file relative to the tree. `*` is any
            text, `?` one character.
        deny: patterns of calls that never run.
        roots: folders outside the tree that count as inside, absolute.
    """

    mode: Mode = "ask"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    roots: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode {self.mode!r} is none of {', '.join(MODES)}")
        for pattern in (*self.allow, *self.deny):
            _split(pattern)

    def allowing(self, *patterns: str) -> Rules:
        """These rules with more that is allowed."""
        return replace(self, allow=tuple(dict.fromkeys((*self.allow, *patterns))))


def verdict(rules: Rules, tool: Tool, arguments: Mapping[str, Any], place: Place) -> tuple[Word, str]:
    """Whether a call may run, and why not, one line; "" where it may.

    Args:
        rules: the human's.
        tool, arguments: the call.
        place: where it would be carried out.
    """
    denied = next((pattern for pattern in rules.deny if _denies(pattern, tool, arguments, place)), None)
    if denied is not None:
        return "deny", f"the rule {denied} forbids it"
    if tool.name in _OWN:
        return "allow", ""
    roots = [Path(os.path.realpath(root)) for root in (place.tree, *rules.roots)]
    if why := _asks(tool, arguments, place, roots):
        return "ask", why
    if rules.mode == "auto" or _allowed(rules.allow, tool, arguments, place):
        return "allow", ""
    if tool.kind == "read" or (tool.kind == "edit" and rules.mode == "edits"):
        return "allow", ""
    return "ask", {"edit": "it changes a file", "run": "it runs a command"}.get(tool.kind, "no rule knows this tool")


def pattern_of(tool: Tool, arguments: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    """The patterns that cover calls like this one, for "always": the very command, or the very file; () for none.

    A command with a chain, a substitution or a redirection has none.
    """
    if tool.kind == "run":
        simple = _parts(arguments, place)
        if simple is None or not all(_coverable(one) for one in simple):
            return ()
        return tuple(dict.fromkeys(f"{tool.name}({_escaped(one.text)})" for one in simple))
    if tool.paths:
        return tuple(f"{tool.name}({_escaped(name)})" for name in _names(tool, arguments, place)[:1])
    return (tool.name,)


def _asks(tool: Tool, arguments: Mapping[str, Any], place: Place, roots: Sequence[Path]) -> str:
    if tool.kind == "run" and "command" in tool.schema.get("properties", {}):
        command = arguments.get("command")
        if not isinstance(command, str):
            return "there is no command in it that could be looked at"
        return dangers.of_command(command, place.shell.directory, roots, place.environment)
    for name in tool.paths:
        given = arguments.get(name)
        if given is None:
            continue
        if not isinstance(given, str) or "\0" in given:
            return f"{name} is no path that could be looked at"
        file = locate(place, given)
        if not dangers.inside(file, roots):
            return f"{given} is outside the working tree"
        if tool.kind != "read":
            for why in gits_own(file, place.tree):
                return why
    return ""


def _split(pattern: str) -> tuple[str, str | None]:
    found = re.fullmatch(r"([\w*?.:-]+)(?:\((.*)\))?", pattern.strip(), re.S)
    if found is None:
        raise ValueError(f"the rule {pattern!r} is neither a tool's name nor NAME(PATTERN)")
    return found[1], found[2]


def _allowed(patterns: Sequence[str], tool: Tool, arguments: Mapping[str, Any], place: Place) -> bool:
    inner = [inside for name, inside in map(_split, patterns) if fnmatchcase(tool.name, name)]
    if None in inner:
        return True
    if tool.kind == "run":
        # Every simple command has to be covered: `git status; rm x` is not by `git status*` alone.
        texts: list[str | None] = [
            one.text if _coverable(one) else None for one in _parts(arguments, place) or [Simple()]
        ]
    else:
        texts = list(_names(tool, arguments, place)[:1]) or [None]
    return all(text is not None and any(fnmatchcase(text, one or "") for one in inner) for text in texts)


def _denies(pattern: str, tool: Tool, arguments: Mapping[str, Any], place: Place) -> bool:
    name, inner = _split(pattern)
    if not fnmatchcase(tool.name, name):
        return False
    if inner is None:
        return True
    if tool.kind != "run":
        return any(fnmatchcase(one, inner) for one in _names(tool, arguments, place))
    command = arguments.get("command")
    texts = [command] if isinstance(command, str) else []
    for one in _parts(arguments, place) or ():
        words = [word.text for word in one.words]
        for start in range(len(words)):  # also behind sudo, env and the like, and by the program's name alone
            texts += [" ".join(words[start:]), " ".join([Path(words[start]).name, *words[start + 1 :]])]
    return any(fnmatchcase(text, inner) for text in texts)


def _parts(arguments: Mapping[str, Any], place: Place) -> list[Simple] | None:
    command = arguments.get("command")
    try:
        return taken_apart(command, place.environment) if isinstance(command, str) else None
    except (Unclear, RecursionError):
        return None


def _coverable(one: Simple) -> bool:
    """Whether a pattern can vouch for it: its words are all there is to it, and all of them are known."""
    return (
        bool(one.words)
        and not one.assigned
        and not one.targets
        and not one.inside
        and not one.fed
        and all(word.certain for word in one.words)
    )


def _names(tool: Tool, arguments: Mapping[str, Any], place: Place) -> list[str]:
    """A call's file: relative to the tree with links followed, then absolute, then as it was given."""
    given = next((arguments[name] for name in tool.paths if isinstance(arguments.get(name), str)), None)
    if given is None or "\0" in given:
        return []
    file = Path(os.path.realpath(locate(place, given)))
    names = [str(file), given]
    return [file.relative_to(place.tree).as_posix(), *names] if file.is_relative_to(place.tree) else names


def _escaped(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)
