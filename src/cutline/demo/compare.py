"""The same question over three contexts: behind a client's summary, a full handoff, and a micro-handoff.

Law: the third is the request that really went out; the other two are that request with a document in the place of what
lay before the seam. The documents are written for the demo and say only what is true of it; what is counted, is counted
of what stands in each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .. import specifics

SUMMARY = """\
This conversation goes on from an earlier one that no longer fitted the context. A summary of it:

1. What the user wants
March does not close: `python -m till close data/march` is off by a few cents on some days. Find out why and fix it. \
The tests are `python check.py`. The user reads along and wants to be told what is done.

2. Background
Amounts are whole cents. Discount comes before tax, both are rounded for each line of a receipt. The till is compared \
with the bank's export day by day.

3. Files
- till/tax.py: `tax_on` used `(net * rate + 50) // 100`, which rounds halves up and so treats refunds otherwise than \
sales. Now `round_div(net * rate, 100)`.
- till/discount.py: `discounted` had the same idiom. Now `round_div(listed * (100 - percent), 100)`.
- till/money.py: has `round_div`. `parse_cents` was changed and put back.
- tests/test_mirror.py: new. The tax and the discount of a minus amount are minus those of the amount.
- recipes/half_cents.sh: new. Lists refunds whose tax falls on half a cent.
- README.md: the rule about `round_div`.

4. Errors
The float in `parse_cents` was suspected first; that was wrong and was reverted. Two awk commands gave wrong counts \
before a third one was right.

5. How it was solved
The user pointed at refunds, and all days that were off had some. A number of refunds did not undo their sale. Tax \
explained somewhat more than half of the difference, the discount the rest. After both changes March closes and all \
tests pass.

6. The user's messages
- Our month doesn't close … find out why, and fix it.
- … the bad days are the ones when the cafés send bread back.

7. Open
February was not looked at. Next: close it with the new code.
"""
"""What a client's own compaction leaves, in the manner of those that ask a model for a structured summary."""

HANDOFF = """\
# Handoff: March does not close

You take over from another instance, which saw all of this. You have the folder crumb and its tools, nothing else.

## The task
The owner's month did not close: `python -m till close data/march` compares the till with the bank day by day, and \
some days were off by cents. They asked for the reason and a fix, and want to be told what you do as you go. They are \
friendly and attentive; their hint that the bad days are those with bread sent back turned the search round.

## The cause
A refund was rounded otherwise than its sale. Two places used `(… + 50) // 100`, which rounds halves up, also below \
zero: till/tax.py:41 (`tax_on`) and till/discount.py:19 (`discounted`). 5.5 cents of tax became 6 in the sale and 5 in \
the refund.

## What shows it
- Before: 11 of 26 days of March off, 0.51 in all, the till always above the bank.
- All bad days have refunds; three days have refunds and closed all the same.
- Tax alone explained 29 of the 51 cents. With tax mended 10 of 26 days were off, 0.22 in all; then discount: none.
- After: `python -m till close data/march` ends with 0 of 26 days off; `python check.py` with 25 tests, 0 failed.

## What was changed
- till/tax.py and till/discount.py: both round by `round_div` of till/money.py, halves away from zero.
- tests/test_mirror.py: new; failed twice before the change, as it should.
- README.md, Rules of money: a refund is its sale with the sign turned, never `// 100`.
- recipes/half_cents.sh: lists the refunds whose tax falls on half a cent; `sh recipes/half_cents.sh data/march`.

## What was tried and is not it
The float in `parse_cents` (till/money.py:6) breaks the package's own promise, but 2,355 amounts were read both ways \
and 0 differ. It was changed, then put back; it is worth a change of its own.

## Traps
- awk's remainder keeps the sign: -1950 % 100 is -50. Strip it before you look for half cents.
- close.log holds sales and refunds; count refunds only.
- tests/test_tax.py has one refund, a mug at 20 per cent, which can never be half a cent: it could not fail.

## Next
Close February with the code as it is, then work out what it was before. Say both figures to the owner.
"""
"""What an instance that ends writes for a fresh one: longer than a notebook entry, for one who has seen nothing."""

PARTS = {"till/tax.py:41": "where it was", "42 of 162 refunds": "what it hit"}
"""What the question asks for, as the agent said it, and what each is."""


@dataclass(frozen=True, slots=True)
class Context:
    """A context in which the question is asked.

    Attributes:
        name: what was done at the seam.
        costs: who makes it.
        body: the request, ready to be sent.
        bytes: of its messages.
        said: share of the agent's and the human's words from before the seam that stand in it, byte for byte.
        named: how many specifics that the agent stated before the seam stand in it.
        opening: what stands where the history was, as text.
    """

    name: str
    costs: str
    body: bytes
    bytes: int
    said: float
    named: int
    opening: str


def contexts(whole: bytes, sent: bytes, checkpoint: str) -> tuple[list[Context], int]:
    """The three contexts, and how many specifics were stated before the seam.

    Args:
        whole: the question's request uncut, in Anthropic's format.
        sent: as it went out.
        checkpoint: name of the checkpoint's tool.
    """
    asked: dict[str, Any] = json.loads(whole)
    seam = max(number for number, message in enumerate(asked["messages"]) if _calls(message, checkpoint))
    before, behind = asked["messages"][:seam], asked["messages"][seam + 2 :]
    spoken = [text for message in before for text in _texts(message)]
    seen = "\n".join(text for message in before for text in _results(message))
    stated = [name for name in specifics.names("\n".join(spoken)) if specifics.stands(name, seen)]
    made = [
        ("client summary", "a model, over all of it", [_user(SUMMARY), *behind]),
        ("full handoff", "the agent, for another", [_user(HANDOFF), *behind]),
        ("micro-handoff", "the agent, then a cut", json.loads(sent)["messages"]),
    ]
    found = []
    for name, costs, messages in made:
        body = sent if messages is made[2][2] else json.dumps(asked | {"messages": messages}).encode()
        own = messages[: len(messages) - len(behind)]
        texts = [text for message in own for text in (*_texts(message), *_results(message), *_documents(message))]
        held = "\n".join(texts)
        said = sum(len(text) for text in spoken if text in held) / sum(map(len, spoken))
        weight = len(json.dumps(messages, ensure_ascii=False, separators=(",", ":")).encode())
        count = sum(specifics.stands(name, held) for name in stated)
        found.append(Context(name, costs, body, weight, said, count, "\n\n".join(texts)))
    return found, len(stated)


def holder(context: Context, text: str) -> str:
    """The first sentence of a context in which a text stands; "" for none."""
    return sentence(context.opening, text)


def sentence(words: str, text: str) -> str:
    """The first sentence of some words that holds a text; "" for none."""
    line = next((line for line in words.splitlines() if text in line), "")
    return next((part for part in line.split(". ") if text in part), line)


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def _blocks(message: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return (block for block in content if block["type"] == kind)


def _calls(message: dict[str, Any], name: str) -> bool:
    return any(block["name"] == name for block in _blocks(message, "tool_use"))


def _texts(message: dict[str, Any]) -> Iterator[str]:
    return (block["text"] for block in _blocks(message, "text"))


def _results(message: dict[str, Any]) -> Iterator[str]:
    for block in _blocks(message, "tool_result"):
        content = block.get("content") or ""
        yield content if isinstance(content, str) else "\n".join(str(part.get("text") or "") for part in content)


def _documents(message: dict[str, Any]) -> Iterator[str]:
    return (json.dumps(block["input"], ensure_ascii=False) for block in _blocks(message, "tool_use"))
