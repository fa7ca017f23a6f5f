"""A shell command taken apart: every simple command in it, wherever it stands, with what is known of its words.

Law: pure. tree-sitter's grammar of bash reads; what it can't read with certainty, and each construct that is not known
here, is `Unclear`, and who asks must then take it for the worst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from tree_sitter import Language, Node, Parser

_DEEPEST = 200
# What the grammar and bash were seen to read differently, or what a person does not see: found in the text itself.
_DOUBTS = (
    (
        re.compile(r"[^\S \t\n]|[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"),
        "it holds U+{:04X}, which hides or reorders what is read",
    ),
    (re.compile(r"(?<!\$)(?<!for )\(\("), "what `((` begins in it can't be told with certainty"),
    (re.compile(r"(?:^|[\s<>=;|&(])\\[ \t\n]|\\[ \t]+(?:\n|\Z)"), "it holds a lone escaped blank"),
    (re.compile(r"\$(?=[ \t\n])"), "it holds a lone $"),
    (re.compile(r"^(?![^\n]*(?:^|[\s;&|(!])\[\[ [^\n]*=~ [^\n]* \]\])[^\n]*=~", re.M), "it holds =~ outside [[ … ]]"),
)
# What holds commands and adds nothing to them, and what holds none.
_STRUCTURE = frozenset(
    """
    program list pipeline subshell compound_statement do_group if_statement elif_clause else_clause while_statement
    for_statement c_style_for_statement case_statement case_item negated_command command_name function_definition string
    concatenation array arithmetic_expansion expansion command_substitution process_substitution binary_expression
    unary_expression postfix_expression parenthesized_expression ternary_expression subscript heredoc_body
    translated_string
    """.split()  # noqa: SIM905
)
_LEAVES = frozenset(
    """
    word raw_string ansi_c_string string_content number simple_expansion variable_name special_variable_name comment
    heredoc_start heredoc_end heredoc_content test_operator regex extglob_pattern file_descriptor brace_expression
    """.split()  # noqa: SIM905
)
_RESERVED = frozenset(
    "if then elif else fi for while until do done case esac in select function { } ! [[ ]] (( coproc".split()  # noqa: SIM905
)
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)")


class Unclear(ValueError):
    """A command that can't be read with certainty."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command.

    Attributes:
        text: what it comes to, quotes and escapes taken off; what only the run decides is left out of it.
        certain: all of it is known; a glob is.
        quoted: some of it stands in quotes.
        substitutes: it holds the output of a command.
    """

    text: str
    certain: bool = True
    quoted: bool = False
    substitutes: bool = False


@dataclass(frozen=True, slots=True)
class Simple:
    """A simple command.

    Attributes:
        words: the program and its arguments; empty for assignments and redirections alone.
        assigned: variables set for it, or by it.
        targets: files that it is redirected to or from.
        fed: its standard input is a pipe, a here-document or a string.
        inside: what holds it, from the outside: a pipe, a substitution, a function, a control structure.
    """

    words: tuple[Word, ...] = ()
    assigned: tuple[tuple[str, Word], ...] = ()
    targets: tuple[Word, ...] = ()
    fed: bool = False
    inside: tuple[str, ...] = field(default=())

    @property
    def text(self) -> str:
        """Its words as one line."""
        return " ".join(word.text for word in self.words)


@cache
def _parser() -> Parser:
    import tree_sitter_bash

    return Parser(Language(tree_sitter_bash.language()))


def taken_apart(command: str, environment: Mapping[str, str]) -> list[Simple]:
    """The simple commands of a command, in the order in which they stand; those in substitutions and functions too.

    Args:
        command: what bash would read.
        environment: variables whose values are known.

    Raises:
        Unclear: it can't be read with certainty.
    """
    command = _joined_lines(command)
    for form, why in _DOUBTS:
        if found := form.search(command):
            raise Unclear(why.format(ord(found[0][0])))
    try:
        root = _parser().parse(command.encode()).root_node
    except UnicodeEncodeError:
        raise Unclear("it holds half a character") from None
    if root.has_error:
        raise Unclear("it is no bash that can be read with certainty")
    return list(_commands(root, (), environment, 0))


def _joined_lines(command: str) -> str:
    """The command with its continued lines made one, as bash does before it reads words.

    Raises:
        Unclear: where they may stand in what bash does not continue.
    """
    if "\\\n" not in command:
        return command
    if "<<" in command or "$'" in command:
        raise Unclear("it continues lines beside a here-document or $'…'")
    out: list[str] = []
    state, at = "", 0
    while at < len(command):
        sign = command[at]
        if sign == "\\" and state in ("", '"'):
            out.append("" if command[at + 1 : at + 2] == "\n" else command[at : at + 2])
            at += 2
            continue
        if state == "#":
            state = "" if sign == "\n" else state
        elif state:
            state = "" if sign == state else state
        elif sign in "'\"" or (sign == "#" and (not "".join(out[-1:]) or "".join(out[-1:]) in " \t\n;|&()")):
            state = sign
        out.append(sign)
        at += 1
    return "".join(out)


def _commands(node: Node, inside: tuple[str, ...], known: Mapping[str, str], deep: int) -> Iterator[Simple]:
    if deep > _DEEPEST:
        raise Unclear("it is nested too deeply")
    kind = node.type
    if kind == "redirected_statement":
        body = node.child_by_field_name("body")
        redirects = [child for child in node.named_children if child.type.endswith("_redirect")]
        made = list(_commands(body, inside, known, deep + 1)) if body is not None else []
        targets, fed = _redirected(redirects, known)
        alone = Simple(targets=targets, fed=fed, inside=inside)
        if body is not None and body.type in ("command", "declaration_command") and made:
            first = made[0]
            made[0] = Simple(first.words, first.assigned, first.targets + targets, first.fed or fed, first.inside)
        else:  # whatever stands in it may read what it is fed with
            made = [alone, *(Simple(m.words, m.assigned, m.targets, m.fed or fed, m.inside) for m in made)]
        yield from made
        for (
            redirect
        ) in redirects:  # behind a here-document's sign the line goes on: what stands there may be fed with it
            for m in _within(redirect, (*inside, "redirect"), known, deep):
                yield Simple(m.words, m.assigned, m.targets, True, m.inside)
    elif kind in ("command", "declaration_command", "unset_command", "test_command"):
        yield _simple(node, inside, known)
        yield from _within(node, (*inside, "substitution"), known, deep)
    elif kind == "variable_assignment":
        yield Simple(assigned=tuple(_assignments(node, known)), inside=inside)
        yield from _within(node, (*inside, "substitution"), known, deep)
    elif kind == "pipeline":
        for index, part in enumerate(node.named_children):
            for simple in _commands(part, (*inside, "pipe"), known, deep + 1):
                yield Simple(simple.words, simple.assigned, simple.targets, simple.fed or index > 0, simple.inside)
    elif kind.endswith("_redirect") or kind in _STRUCTURE:
        if kind == "for_statement":
            values = [_word(value, known) for value in node.children_by_field_name("value")]
            variable = node.child_by_field_name("variable")
            name = _source(variable) if variable is not None else ""
            yield Simple(assigned=((name, Word("")), *((name, value) for value in values)), inside=(*inside, kind))
        outer = inside if kind in ("program", "list", "string", "concatenation", "array") else (*inside, kind)
        yield from _within(node, outer, known, deep)
    elif kind not in _LEAVES:
        raise Unclear(f"it holds a construct that is not known here ({kind})")


def _within(node: Node, inside: tuple[str, ...], known: Mapping[str, str], deep: int) -> Iterator[Simple]:
    for child in node.named_children:
        if child.type == "variable_assignment" and node.type in ("command", "declaration_command"):
            yield from _within(child, inside, known, deep + 1)
        else:
            yield from _commands(child, inside, known, deep + 1)


def _simple(node: Node, inside: tuple[str, ...], known: Mapping[str, str]) -> Simple:
    ends = [node.start_byte, *(child.end_byte for child in node.children)]
    for end, child in zip(ends, node.children, strict=False):
        if b"\n" in (node.text or b"")[end - node.start_byte : child.start_byte - node.start_byte]:
            raise Unclear("a command in it goes over a line's end")
    words: list[Word] = []
    assigned: list[tuple[str, Word]] = []
    targets: tuple[Word, ...] = ()
    fed = False
    if node.type in ("declaration_command", "unset_command", "test_command"):
        words.append(Word(node.children[0].type))
    for child in node.named_children:
        if child.type == "variable_assignment":
            assigned += _assignments(child, known)
        elif child.type.endswith("_redirect"):
            more, reads = _redirected([child], known)
            targets, fed = targets + more, fed or reads
        elif child.type != "comment":
            words.append(_word(child, known))
    # The grammar takes `! if x; then …` for a command named if: a reserved word where a command begins is no command.
    begins = next((word for word in words if word.text != "time" and not word.text.startswith("-")), Word(""))
    if node.type == "command" and begins.text in _RESERVED and not begins.quoted:
        raise Unclear(f"`{begins.text}` stands where it can't be read with certainty")
    return Simple(tuple(words), tuple(assigned), targets, fed, inside)


def _redirected(redirects: list[Node], known: Mapping[str, str]) -> tuple[tuple[Word, ...], bool]:
    targets: list[Word] = []
    fed = False
    for redirect in redirects:
        if redirect.type != "file_redirect":
            fed = True
            targets += _redirected(
                [child for child in redirect.named_children if child.type == "file_redirect"], known
            )[0]
            continue
        if len([target for target in redirect.named_children if target.type != "file_descriptor"]) > 1:
            raise Unclear(
                "words stand behind a redirection's file"
            )  # they may be a command, the grammar takes them all
        operator = next((child.type for child in redirect.children if not child.is_named), "")
        for target in redirect.named_children:
            if target.type == "file_descriptor":
                continue
            word = _word(target, known)
            if operator in (">&", "<&", ">&-", "<&-") and word.certain and re.fullmatch(r"\d+-?|-", word.text):
                continue
            targets.append(word)
            fed = fed or operator.startswith("<")
    return tuple(targets), fed


def _assignments(node: Node, known: Mapping[str, str]) -> Iterator[tuple[str, Word]]:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    text = _source(name).partition("[")[0] if name is not None else ""
    if value is not None and value.type == "array":
        for part in value.named_children:
            yield text, _word(part, known)
    yield text, _word(value, known) if value is not None else Word("")


def _source(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _word(node: Node, known: Mapping[str, str]) -> Word:
    source = _source(node)
    match node.type:
        case "word" if re.search(r"\s", re.sub(r"\\.", "", source, flags=re.S)):
            raise Unclear("a word in it holds a line break or a blank")
        case "word" | "number" | "extglob_pattern" | "regex" | "test_operator" | "variable_name":
            text = re.sub(r"\\(\n?)(.?)", lambda found: "" if found[1] else found[2], source, flags=re.S)
            return Word(text, not _BRACES.search(source) and node.type not in ("extglob_pattern", "regex"))
        case "raw_string":
            return Word(source[1:-1], quoted=True)
        case "string_content":
            return Word(re.sub(r'\\([$`"\\\n])', lambda f: "" if f[1] == "\n" else f[1], source), quoted=True)
        case "command_name":
            return _joined(node, known)
        case "string" | "concatenation":
            return _joined(node, known)
        case "simple_expansion" | "expansion":
            name = re.fullmatch(r"\$(\w+)|\$\{(\w+)\}", source)
            value = known.get(name[1] or name[2]) if name is not None else None
            inner = "command_substitution" in {child.type for child in _all(node)}
            if value is not None and not re.search(r"[\s*?\[]", value):
                return Word(value)
            return Word("", certain=False, substitutes=inner)
    holds = any(child.type in ("command_substitution", "process_substitution") for child in _all(node))
    return Word("", certain=False, substitutes=holds)


def _joined(node: Node, known: Mapping[str, str]) -> Word:
    parts: list[Word] = []
    at = node.start_byte
    base = node.text or b""
    for child in node.children:
        if child.start_byte > at and node.type == "string":  # white space that the grammar gives no node of its own
            parts.append(
                Word(base[at - node.start_byte : child.start_byte - node.start_byte].decode("utf-8", "replace"))
            )
        if child.is_named or node.type == "concatenation":
            parts.append(_word(child, known))
        at = child.end_byte
    return Word(
        "".join(part.text for part in parts),
        all(part.certain for part in parts) and not (node.type == "concatenation" and _BRACES.search(_source(node))),
        node.type == "string" or any(part.quoted for part in parts),
        any(part.substitutes for part in parts),
    )


def _all(node: Node) -> Iterator[Node]:
    yield node
    for child in node.named_children:
        yield from _all(child)
