"""Generated Anthropic histories: valid ones in every shape that clients send, and broken ones.

A history is drawn turn by turn as plain values and written as JSON in a drawn spelling, so that the words, the
structure and the bytes vary apart from one another.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hypothesis import strategies as st

Draw = Callable[[Any], Any]
Message = dict[str, Any]
Blocks = list[dict[str, Any]]


def _tagged(word: bytes) -> str:
    """A signature whose envelope holds a word where the API writes what kind of thinking it is."""
    inner = b"\x42" + bytes([len(word)]) + word
    middle = b"\x0a" + bytes([len(inner)]) + inner
    return base64.b64encode(b"\x08\x01\x12" + bytes([len(middle)]) + middle).decode()


NARRATION = _tagged(b"narration")
THINKING = _tagged(b"reasoning")

MODELS = (
    None,
    "claude-opus-4-7",
    "claude-sonnet-4-5-20250929",
    "claude-opus-5-5",
    "claude-fable-5-2",
    "claude-sonnet-5-5",
    "claude-something-new",
)
CONFIGURATIONS = (None, "adaptive", "enabled", "disabled", "between_tools")
CHECKPOINTS = ("micro_handoff", "mcp__cutline__micro_handoff", "cutline.micro_handoff")
SPEECH = ("AskUserQuestion", "ExitPlanMode")
INSTRUCTIONS = ("Skill", "ToolSearch")
WORLD = (
    "Bash",
    "Read",
    "Read",
    "Grep",
    "Edit",
    "Task",
    "wetter_für_morgen",
    "mcp__cutline__recall",
    "Unmicro_handoffs",
)
TOOLS = (*WORLD, *SPEECH, *INSTRUCTIONS, "TodoWrite", "mcp__cutline__say")
REFUSAL = "The user doesn't want to proceed with this tool use. The user said: not like that."
STUBS = (
    "File unchanged since last read. The content from the earlier Read tool_result is still current.",
    "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead.",
    "Already fetched https://a.example/ with the same prompt 40s ago in this conversation (tool call toolu_1). …",
)

WORDS = st.sampled_from(
    (
        "Let me look.",
        "I'll read src/app.py because the count of 41 looks wrong.",
        "It holds 3 races; `retry` is called twice.",
        'Say "yes", then C:\\temp\\new and a/b.',
        "two\nlines\tand a tab",
        "Grüße, 世界 😀",
        "a broken \ud83d escape",
        "\u2028separators\u2029 and \x7f",
        " white around \n",
        "[cutline] Left out of the context",
        "micro_handoff",
        '{"role":"user"}',
    )
) | st.text(min_size=1, max_size=8).filter(str.strip)
BLANK = st.sampled_from((" ", "\n", "\t \n", "\u00a0"))
HARNESS = st.sampled_from(("<system-reminder>be brief</system-reminder>", "Caveat: The messages below were generated"))
FILES = st.sampled_from(("src/app.py", "CLAUDE.md", "docs/straße.md"))
ONE_IN = {share: st.sampled_from((True, *[False] * (share - 1))) for share in (2, 3, 4, 6, 8, 12)}
FEW = st.sampled_from((0, 1, 1, 2))


@dataclass(frozen=True)
class Style:
    """How a body is spelled: escapes, white space, the order of members."""

    ascii: bool = False
    comma: str = ","
    colon: str = ":"
    pad: str = ""
    order: str = "usual"
    odd: bool = False


STYLES = st.builds(
    Style,
    ascii=st.booleans(),
    comma=st.sampled_from((",", ",", ", ", "\n,\t")),
    colon=st.sampled_from((":", ":", ": ", " :\r\n")),
    pad=st.sampled_from(("", "", " ", "\n  ")),
    order=st.sampled_from(("usual", "usual", "reversed", "sorted")),
    odd=st.sampled_from((False, False, True)),
)


def write(value: Any, style: Style) -> str:
    """JSON in a style."""
    if isinstance(value, dict):
        keys = list(value)
        keys = keys[::-1] if style.order == "reversed" else sorted(keys) if style.order == "sorted" else keys
        inside = style.comma.join(f"{write(key, style)}{style.colon}{write(value[key], style)}" for key in keys)
        return f"{{{style.pad}{inside}{style.pad}}}"
    if isinstance(value, list):
        return f"[{style.pad}{style.comma.join(write(item, style) for item in value)}{style.pad}]"
    if isinstance(value, str):
        lone = any("\ud800" <= letter <= "\udfff" for letter in value)
        text = json.dumps(value, ensure_ascii=style.ascii or lone)
        # Solidus escapes and needless numeric ones, as some writers put them.
        return text.replace("/", "\\/").replace("w", "\\u0077") if style.odd and "micro" not in value else text
    return json.dumps(value)


@dataclass(frozen=True)
class History:
    """A drawn history.

    Attributes:
        messages: the messages.
        members: the body's other members.
        style: how it is written.
        growth: histories that begin with this one, each longer than the one before.
    """

    messages: list[Message]
    members: dict[str, Any]
    style: Style
    growth: list[list[Message]] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        """The request body."""
        whole = {**self.members, "messages": self.messages, "stream": True}
        return write(whole, self.style).encode()

    def grown(self) -> list[History]:
        """The longer histories."""
        return [replace(self, messages=messages, growth=[]) for messages in self.growth]


@dataclass
class _Writer:
    """Draws turns; knows what keeps a history valid."""

    draw: Draw
    model: str | None
    thinking: str | None
    anew: bool
    thinks: Literal["always", "first"] = "always"
    opens: bool = True
    messages: list[Message] = field(default_factory=list)
    made: int = 0

    def one_in(self, share: int) -> bool:
        return bool(self.draw(ONE_IN[share]))

    # ---- blocks

    def id(self) -> str:
        self.made += 1
        return f"call_{self.made}" if self.made % 5 else f"ruf_{self.made}_ü"

    def text(self, words: str) -> dict[str, Any]:
        block = {"type": "text", "text": words}
        if self.one_in(12):
            block["citations"] = [{"type": "char_location", "cited_text": "x", "document_index": 0}]
        elif self.one_in(12):
            block["citations"] = None
        return block

    @property
    def must_think(self) -> bool:
        """With manual thinking each message begins with it, or the first one of a tool loop alone."""
        return self.thinking == "enabled" and (self.opens or self.thinks == "always")

    def thoughts(self, needed: bool) -> Blocks:
        first_alone = self.thinking == "enabled" and self.thinks == "first"
        if self.thinking == "disabled" or not (needed or (self.one_in(2) and not first_alone)):
            return []
        found: Blocks = []
        for _ in range(1 + self.one_in(4)):
            kind = self.draw(st.sampled_from(("plain", "plain", "narration", "hidden", "redacted", "connector")))
            if needed and not found and kind == "connector":
                kind = "plain"
            words = self.draw(WORDS)
            if kind == "redacted":
                found.append({"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"})
            elif kind == "connector":
                found.append({"type": "connector_text", "text": words, "signature": THINKING})
            else:
                signature = THINKING if kind == "plain" else NARRATION
                found.append(
                    {"type": "thinking", "thinking": "" if kind == "hidden" else words, "signature": signature}
                )
        return found

    def server_pair(self) -> Blocks:
        id = "srv" + self.id()
        name = self.draw(st.sampled_from(("web_search", "tool_search_tool_bm25", "code_execution")))
        answer = {
            "web_search": "web_search_tool_result",
            "tool_search_tool_bm25": "tool_search_tool_result",
            "code_execution": "code_execution_tool_result",
        }[name]
        return [
            {"type": "server_tool_use", "id": id, "name": name, "input": {"query": "x"}},
            {"type": answer, "tool_use_id": id, "content": {"type": "found", "encrypted": "abc"}},
        ]

    def pair(self) -> tuple[dict[str, Any], dict[str, Any]]:
        id, name = self.id(), self.draw(st.sampled_from(TOOLS))
        file = self.draw(FILES)
        inputs: dict[str, Any] = {
            "mcp__cutline__say": {"text": self.draw(WORDS)},
            "Bash": {"command": f"cat {file}", "timeout": 10},
            "TodoWrite": {"todos": [{"content": "fix it", "status": "pending"}]},
            "Task": {"description": "look around", "prompt": "…"},
        }
        call = {"type": "tool_use", "id": id, "name": name, "input": inputs.get(name, {"file_path": file})}
        if self.one_in(12):
            call["caller"] = {"type": "direct"}
        return call, {"type": "tool_result", "tool_use_id": id, **self.outcome(name)}

    def outcome(self, name: str) -> dict[str, Any]:
        kind = self.draw(
            st.sampled_from(("text", "text", "text", "list", "image", "none", "empty", "loads", "no", "stub", "error"))
        )
        words = self.draw(WORDS)
        if kind == "list":
            return {"content": [{"type": "text", "text": words}, {"type": "text", "text": "1\n2\n3"}]}
        if kind == "image":
            return {"content": [{"type": "text", "text": words}, _image()]}
        if kind == "none":
            return {}
        if kind == "empty":
            return {"content": []}
        if kind == "loads":
            return {"content": [{"type": "tool_reference", "tool_name": "Grep"}]}
        if kind == "no":
            refusal = REFUSAL if self.one_in(2) else "[Request interrupted by user for tool use]"
            return {"content": refusal, "is_error": True}
        if kind == "stub" and name == "Read":
            stub = self.draw(st.sampled_from(STUBS))
            return {"content": stub if self.one_in(2) else [{"type": "text", "text": stub}]}
        if kind == "error":
            return {"content": f"Error: {words}", "is_error": True}
        return {"content": words * 30, "is_error": False}

    # ---- messages

    def add(self, role: str, blocks: Blocks) -> None:
        plain = len(blocks) == 1 and set(blocks[0]) == {"type", "text"} and self.one_in(2)
        self.messages.append({"role": role, "content": blocks[0]["text"] if plain else blocks})
        if self.one_in(12) and self.thinking != "enabled":
            self.messages[-1]["name"] = "somebody"
        if role != "system":
            self.opens = role == "user" and any(
                block["type"] != "tool_result" and block.get("text", "x").strip() for block in blocks
            )

    def human(self) -> None:
        blocks: Blocks = []
        if self.one_in(6):
            blocks.append({"type": "text", "text": self.draw(HARNESS)})
        blocks.append(self.text(self.draw(WORDS)))
        if self.one_in(6):
            blocks.append(
                self.draw(st.sampled_from((_image(), {"type": "document", "source": {"type": "text", "data": "d"}})))
            )
        if self.one_in(8):
            blocks.insert(0, {"type": "text", "text": self.draw(BLANK)})
        if self.one_in(12):
            blocks.append({"type": "hologram", "data": {"text": "?"}})
        self.add("user", blocks)
        self.system()

    def system(self) -> None:
        if self.one_in(8):
            blocks: Blocks = [{"type": "text", "text": self.draw(WORDS)}]
            if self.one_in(4):
                blocks = [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "Grep"}}]
            self.add("system", blocks)

    def spoken(self, needed: bool) -> Blocks:
        """What an agent's message holds beside its calls; never only thinking."""
        blocks = self.thoughts(needed)
        for _ in range(self.draw(FEW)):
            blocks.append(self.text(self.draw(WORDS)))
            if self.one_in(8):
                blocks += self.thoughts(False)
        if self.one_in(8):
            blocks += self.server_pair()
        if self.one_in(12):
            blocks.append(self.draw(st.sampled_from(({"type": "fallback", "from": "a"}, {"type": "aura", "hue": 1}))))
        return blocks

    def agent(self) -> None:
        """Words alone."""
        blocks = self.spoken(self.must_think)
        blocks.append(self.text(self.draw(WORDS)))
        self.add("assistant", blocks)

    def work(self) -> None:
        """Calls, alone, parallel or with words, and their results."""
        blocks = self.spoken(self.must_think)
        if self.one_in(6):
            blocks.append({"type": "text", "text": self.draw(BLANK)})
        pairs = [self.pair() for _ in range(1 + self.draw(FEW))]
        for call, _ in pairs:
            blocks.append(call)
            if self.one_in(8):
                blocks.append(self.text(self.draw(WORDS)))
        self.add("assistant", blocks)
        self.results([result for _, result in pairs])

    def results(self, results: Blocks) -> None:
        blocks = self.draw(st.permutations(results)) if len(results) > 1 and self.one_in(2) else list(results)
        if self.one_in(6):
            blocks.append(self.text(self.draw(WORDS)))
        if self.one_in(8):
            blocks.append({"type": "text", "text": self.draw(HARNESS | BLANK)})
        self.add("user", blocks)
        self.system()

    def checkpoint(self, stored: bool = True) -> None:
        """A checkpoint turn: its own words, siblings on either side, sometimes two checkpoints."""
        blocks = self.spoken(self.must_think)
        results: Blocks = []
        name = self.draw(st.sampled_from(CHECKPOINTS))
        for number in range(1 + self.one_in(6)):
            for share in (6, 0, 6):
                if share and self.one_in(share):
                    call, result = self.pair()
                elif share:
                    continue
                else:
                    id = self.id()
                    call = {
                        "type": "tool_use",
                        "id": id,
                        "name": name,
                        "input": {"done": f"part {number}", "open": "rest"},
                    }
                    result = {"type": "tool_result", "tool_use_id": id, **self.stored(stored)}
                blocks.append(call)
                results.append(result)
        self.add("assistant", blocks)
        self.results(results)

    def stored(self, stored: bool) -> dict[str, Any]:
        if not stored:
            return self.draw(
                st.sampled_from(
                    (
                        {"content": "checkpoint refused: say what went wrong"},
                        {"content": [{"type": "text", "text": '{"result": "checkpoint refused: no"}'}]},
                        {"content": "Stored.", "is_error": True},
                    )
                )
            )
        return self.draw(
            st.sampled_from(
                ({"content": "Stored."}, {"content": [{"type": "text", "text": "Stored."}]}, {}, {"content": []})
            )
        )

    def compaction(self) -> None:
        self.add("assistant", [{"type": "compaction", "content": "What was before."}, self.text(self.draw(WORDS))])
        self.human()

    def turns(self, least: int, most: int, checkpoints: bool = True) -> None:
        for _ in range(self.draw(st.integers(least, most))):
            kind = self.draw(st.sampled_from(("work", "work", "work", "agent", "human", "checkpoint", "refused")))
            if not checkpoints and kind in ("checkpoint", "refused"):
                kind = "work"
            if self.anew and kind == "human":
                self.made = 0
            if kind == "human" and self.messages and self.messages[-1]["role"] == "system":
                kind = "agent"  # a system message stands before the agent's turn
            if kind in ("work", "agent", "human"):
                getattr(self, kind)()
            else:
                self.checkpoint(kind == "checkpoint")

    def close(self) -> None:
        """A request ends with a human's turn, with results, or with a system message behind one of them."""
        if self.messages[-1]["role"] == "assistant":
            self.human()


def _image() -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def marked(draw: Draw, messages: list[Message]) -> list[Message]:
    """The messages with up to two cache marks, near their end as clients put them, or anywhere."""
    out = [dict(message) for message in messages]
    for _ in range(draw(FEW)):
        number = len(out) - 1 - draw(st.integers(0, min(len(out) - 1, 4) if draw(ONE_IN[2]) else len(out) - 1))
        content = out[number]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        last = blocks[-1]
        if last["type"] in ("text", "tool_use", "tool_result", "image"):
            blocks[-1] = {**last, "cache_control": {"type": "ephemeral"}}
            out[number]["content"] = blocks
    return out


@st.composite
def histories(draw: Draw, *, checkpoints: bool = True, grows: bool = False) -> History:
    """Valid histories with at least one stored checkpoint (or with none at all), and some of their futures."""
    model, thinking = draw(st.sampled_from(MODELS)), draw(st.sampled_from(CONFIGURATIONS))
    writer = _Writer(draw, model, thinking, anew=draw(ONE_IN[3]))
    writer.thinks = draw(st.sampled_from(("always", "first")))
    writer.human()
    if not grows and writer.one_in(12):
        writer.compaction()
    writer.turns(1, 5, checkpoints)
    if checkpoints:
        writer.checkpoint()
    writer.turns(0, 3, checkpoints and draw(ONE_IN[2]))
    writer.close()
    growth = []
    messages = list(writer.messages)
    if grows:
        for _ in range(2):
            writer.work() if draw(ONE_IN[2]) else writer.checkpoint()
            writer.turns(0, 2)
            writer.close()
            growth.append(marked(draw, writer.messages))
    members: dict[str, Any] = {"model": model} if model else {}
    if thinking:
        members["thinking"] = {"type": thinking}
    members["tools"] = [
        {"name": name} for name in draw(st.sampled_from(((), ("Bash", "mcp__cutline__recall", "recall"))))
    ]
    return History(marked(draw, messages), members, draw(STYLES), growth)


@st.composite
def broken(draw: Draw) -> History:
    """Histories that a provider refuses: half pairs, ids twice, empty texts, open checkpoints, before the seam."""
    history = draw(histories())
    messages = [dict(message) for message in history.messages]
    last = max(n for n, message in enumerate(messages) if "micro_handoff" in json.dumps(message["content"]))
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(1, last))
        kind = draw(st.sampled_from(("lose", "lose", "lose", "double", "orphan", "open", "open", "empty", "blank")))
        content = messages[number]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        halves = [n for n, block in enumerate(blocks) if block["type"] in ("tool_use", "tool_result")]
        if kind == "lose" and halves and len(blocks) > 1 and number < last:
            del blocks[draw(st.sampled_from(halves))]
        elif kind == "double" and halves:
            chosen = blocks[draw(st.sampled_from(halves))]
            blocks.insert(draw(st.sampled_from(halves)), chosen)
        elif kind == "orphan" and messages[number]["role"] == "user":
            blocks.insert(
                0, {"type": "tool_result", "tool_use_id": draw(st.sampled_from(("gone", "call_1"))), "content": "x"}
            )
        elif kind == "open" and messages[number]["role"] == "assistant" and number < last:
            name = draw(st.sampled_from(("Bash", "Skill", "micro_handoff")))
            blocks.append({"type": "tool_use", "id": "open", "name": name, "input": {}})
        elif kind == "empty":
            blocks.insert(0, {"type": "text", "text": ""})
        elif kind == "blank":
            blocks = [{"type": "text", "text": draw(BLANK)}] if len(blocks) == 1 and not halves else blocks
        messages[number]["content"] = blocks
    return replace(history, messages=messages)
