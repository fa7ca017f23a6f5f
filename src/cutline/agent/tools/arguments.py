"""Arguments as a model writes them, taken one at a time. Law: pure; what is wrong is one line to act on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Wrong(ValueError):
    """An argument that is missing or of the wrong kind."""


def text(given: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """A string.

    Raises:
        Wrong: absent without a default, or no string.
    """
    value = given.get(name, default)
    if not isinstance(value, str):
        raise Wrong(f"{name} is missing" if value is None else f"{name} has to be a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Wrong(f"{name} holds half a character (a lone surrogate), which no file can hold") from None
    return value


def number(given: Mapping[str, Any], name: str, default: float | None, *, least: float, most: float) -> float:
    """A number within bounds.

    Raises:
        Wrong: absent without a default, no number, or out of bounds.
    """
    value = given.get(name)
    if value is None:
        value = default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Wrong(f"{name} is missing" if value is None else f"{name} has to be a number")
    if not least <= value <= most:
        raise Wrong(f"{name} has to be from {least:g} to {most:g}, not {value:g}")
    return value


def flag(given: Mapping[str, Any], name: str) -> bool:
    """True or false; false where it is absent.

    Raises:
        Wrong: anything else.
    """
    value = given.get(name, False)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise Wrong(f"{name} has to be true or false")
    return value
