"""Bodies of other formats as the proof reads them: each in the one shape that the contract is applied to.

Law: facts only, and the proof's own: nothing here is shared with the cut's readers, so that a mistake in one shows.
Each block of the neutral shape knows the node of the body that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..errors import Unreadable
from . import converse, gemini, openai_chat, openai_responses, shape
from .tree import Node, decode, read

LISTS = (b"messages", b"input", b"contents")


@dataclass(frozen=True, slots=True)
class Home:
    """What a block of the neutral shape stands for.

    Attributes:
        item: index of the item (message, item or content) in the body's history.
        node: its own literal: an element of a list, a member's value, or the item itself.
        key: the member of the item that holds it; b"" for the item itself.
    """

    item: int
    node: Node
    key: bytes


class Foreign:
    """A body that is not Anthropic's.

    Attributes:
        name: its format.
        data, root: the body.
        history: the node of the list that holds the history.
        homes: by number of the neutral block, what it stands for.
        made_up: numbers of blocks whose id the reader gave, and those ids, in order.
        held: why the server holds a part of the history; "" if it does not.
        is_output: it is what the cut made, read with the ids that are due.
    """

    def __init__(self, data: bytes, name: str = "", ids: Iterator[str] | None = None) -> None:
        self.data = data
        self.root = read(data)
        self.history = _history(self)
        self.name = name or _recognise(self)
        self.homes: list[Home] = []
        self.made_up: list[tuple[int, str]] = []
        self.held = ""
        self.is_output = ids is not None
        self._ids = ids
        self._given = 0
        self._messages: list[tuple[str, list[bytes]]] = []
        self._open = False
        self.waiting: list[tuple[str, str]] = []
        self.running: list[str] = []
        translate: dict[str, Callable[[Foreign, int, Node], None]] = {
            "openai_chat": openai_chat.translate,
            "openai_responses": openai_responses.translate,
            "gemini": gemini.translate,
            "converse": converse.translate,
        }
        for index, item in enumerate(self.history.elements):
            if item.kind != "{":
                raise Unreadable("an item that is no object", item.start)
            names = [name for name, _ in item.members]
            if len(set(names)) != len(names):
                raise Unreadable("a key stands twice in an item", item.start)
            translate[self.name](self, index, item)
        names = [name for name, _ in self.root.members]
        if len(set(names)) != len(names):
            raise Unreadable("a key stands twice in the body", self.root.start)

    # Reading

    def raw(self, node: Node | None) -> bytes:
        """A node's literal; b"" for none."""
        return b"" if node is None else self.data[node.start : node.end]

    def string(self, node: Node | None) -> str:
        """A string node's text; "" for anything else."""
        return decode(self.raw(node)) if node is not None and node.kind == '"' else ""

    def within(self, node: Node) -> Node:
        """A node with its members, however deep it stands; offsets are those of its own literal."""
        return read(self.raw(node))

    # Making

    def say(self, role: str, block: bytes, item: int, node: Node, key: bytes = b"") -> None:
        """One more block."""
        if not self._open or self._messages[-1][0] != role:
            self._messages.append((role, []))
        self._messages[-1][1].append(block)
        self._open = True
        self.homes.append(Home(item, node, key))

    def part(self) -> None:
        """The next block begins a message."""
        self._open = False

    def give(self) -> str:
        """An id for the next block, which has none."""
        id_ = str(self._given) if self._ids is None else next(self._ids, f"surplus {self._given}")
        self._given += 1
        self.made_up.append((len(self.homes), id_))
        return id_

    def neutral(self) -> bytes:
        """The whole in the neutral shape."""
        told = [b'{"role":"%s","content":[%s]}' % (role.encode(), b",".join(said)) for role, said in self._messages]
        model = self._model()
        head = b'"model":%s,' % shape.quote(model) if model else b""
        kept = b"enabled" if self.name == "converse" else b"kept"  # there a tool loop has to begin with thinking too
        head += b'"thinking":{"type":"%s"},' % kept if self._keeps_thinking(model) else b""
        tools = b",".join(b'{"name":%s}' % shape.quote(name) for name in self._tools())
        return b'{%s"messages":[%s],"tools":[%s]}' % (head, b",".join(told), tools)

    def _model(self) -> str:
        if self.name == "gemini":
            return "gemini"
        return self.string(self.root.get(b"modelId" if self.name == "converse" else b"model"))

    def _keeps_thinking(self, model: str) -> bool:
        if self.name == "converse":
            fields = self.root.get(b"additionalModelRequestFields")
            thinking = fields.get(b"thinking") if fields else None
            return thinking is not None and self.string(thinking.get(b"type")) == "enabled"
        return self.name != "openai_chat" or "claude" not in model.lower()

    def _tools(self) -> Iterator[str]:
        """Names of the tools, in any of the four ways to declare them."""
        config = self.root.get(b"toolConfig") if self.name == "converse" else None  # Gemini's names no tool
        node = self.root.get(b"tools") if config is None else config.get(b"tools")
        inner = (b"function", b"custom", b"toolSpec")
        nested: list[Node] = []
        for tool in node.elements if node is not None else ():
            named = next((found for key in inner if (found := tool.get(key)) is not None), None)
            if self.name in ("openai_responses", "gemini"):
                named = tool
            for key in (b"tools", b"functionDeclarations", b"function_declarations"):
                listed = tool.get(key)
                nested += listed.elements if listed is not None else []
            if named is not None and (name := named.get(b"name")) is not None and name.kind == '"':
                yield self.string(name)
        for one in nested:
            if (name := one.get(b"name")) is not None and name.kind == '"':
                yield self.string(name)


def _history(body: Foreign) -> Node:
    history = next((node for key in LISTS if (node := body.root.get(key)) is not None), None)
    if history is None or history.kind != "[":
        raise Unreadable("no list of messages, items or contents", body.root.start)
    return history


def _recognise(body: Foreign) -> str:
    """The format, by content; a body that fits several or none is none that is cut."""
    history = body.history
    items = [item for item in history.elements if item.kind == "{"]
    fits = []
    if history is body.root.get(b"messages"):
        signs = (b"tool_calls", b"function_call", b"tool_call_id", *openai_chat.REASONING)
        blocks = [block for item in items if (held := item.get(b"content")) is not None for block in held.elements]
        if any(
            any(item.get(key) is not None for key in signs) or body.string(item.get(b"role")) == "developer"
            for item in items
        ) or any(
            body.string(block.get(b"type")) in openai_chat.CHAT_FILES[:3]
            or ((thought := block.get(b"thinking")) is not None and thought.kind == "[")
            for block in blocks
        ):
            fits.append("openai_chat")
        named = [any(block.get(key) is not None for key in converse.CONVERSE) for block in blocks]
        if blocks and all(named) and all(block.get(b"type") is None for block in blocks):
            fits.append("converse")
    elif history is body.root.get(b"input"):
        keys = (b"type", b"role", b"id")
        if items and all(any(item.get(key) is not None for key in keys) for item in items):
            fits.append("openai_responses")
    elif items and all((parts := item.get(b"parts")) is not None and parts.kind == "[" for item in items):
        fits.append("gemini")
    if len(fits) != 1:
        raise Unreadable("no format that is cut, or several at once", history.start)
    return fits[0]
