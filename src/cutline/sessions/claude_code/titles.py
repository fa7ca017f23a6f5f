"""What a session is called.

Law: the name that a person gave comes first, then the client's own title, then its old summary, then the
first words that a person typed; always one line, always printable. A summary of another session, which older
versions left at the head of a file, names nothing: its leaf is not in the file.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..opening import one_line
from .history import History
from .literals import Opened, words
from .people import foreign, typed

# Records that hold a title, the best first, and the member that it stands in.
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
_COMMAND = re.compile(
    r"<command-name>\s*(.*?)\s*</command-name>(?:.*?<command-args>\s*(.*?)\s*</command-args>)?", re.DOTALL
)


def of(history: History) -> str:
    """The title of a session that was read; "" where nobody named it and nobody typed a word."""
    log = history.log
    uuids = {record.uuid for record in log.records}
    last = {
        record.type: record
        for record in log.records
        if record.type in _TITLES and (record.type != "summary" or record.leaf in uuids)
    }
    for type_, key in _TITLES.items():
        if type_ in last:
            opened = Opened(log.raw(last[type_]))
            found = opened.value(opened.top(key))
            if isinstance(found, str) and found.strip():
                return _line(found)
    for number in history.human:
        place = history.places[number][0]
        opened = Opened(log.raw(log.records[place.record]))
        outer, inner = ("message", "content") if opened.inside("message") else ("attachment", "prompt")
        for item in opened.items(opened.inside(outer).get(inner)):
            if item.type == "text" and typed("text", words(item)):
                return _line(words(item))
    return ""


def of_edges(head: bytes, tail: bytes) -> str:
    """The title as far as a file's beginning and end tell; half lines and glued ones are passed over."""
    titles: dict[str, str] = {}
    first = ""
    for line in (*head.split(b"\n"), *tail.split(b"\n")):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(record, dict):
            continue
        type_ = record.get("type")
        if type_ in _TITLES:
            own = f'"uuid":"{record.get("leafUuid")}"'.encode("utf-8", "replace")
            if type_ == "summary" and own not in head and own not in tail:
                continue
            titles[type_] = str(record.get(_TITLES[type_]) or "")
        elif type_ == "user" and not first:
            first = _words(record)
    return _line(next((titles[type_] for type_ in _TITLES if titles.get(type_, "").strip()), first))


def _words(record: dict[str, Any]) -> str:
    """The words that a person typed in a user record; "" where it holds none."""
    marked = any(record.get(mark) for mark in ("isMeta", "isSidechain", "isCompactSummary"))
    if marked or foreign(record.get("origin")):
        return ""
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for block in blocks:
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and typed("text", text):
            return text
    return ""


def _line(text: str) -> str:
    """One printable line: a slash command as it was typed, no white space but blanks, no lone surrogates."""
    command = _COMMAND.search(text)
    if command:
        text = f"{command[1]} {command[2] or ''}"
    return one_line(text)
