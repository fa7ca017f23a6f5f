"""Large JSON is read piece by piece: what is taken is the file's own bytes, however they come in."""

import io
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutline.errors import Unreadable
from cutline.sessions import stream
from cutline.sessions.stream import Stream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=30,
)
FORMS: list[dict[str, Any]] = [{}, {"ensure_ascii": False}, {"indent": 1, "ensure_ascii": False}]


def reading(data: bytes, sizes: random.Random) -> Callable[[int], bytes]:
    """Gives fewer bytes than it is asked for, as a pipe does."""
    handle = io.BytesIO(data)
    return lambda size: handle.read(sizes.randrange(1, max(2, size)))


def walked(found: Stream, ways: random.Random) -> Any:
    """The value at hand, taken whole, entered, or passed over: what was seen of it."""
    begins = found.begins()
    if begins in ("{", "[") and ways.random() < 0.7:
        inside = found.members() if begins == "{" else found.elements()
        return begins, [walked(found, ways) if ways.random() < 0.7 else None for _ in inside]
    return "taken", found.take()


def agrees(value: Any, seen: Any) -> bool:
    if seen is None:
        return True
    kind, inside = seen
    if kind == "taken":
        return bool(json.loads(inside) == value)
    values = list(value.values()) if kind == "{" else value
    return len(values) == len(inside) and all(map(agrees, values, inside))


@given(VALUES, st.sampled_from(FORMS), st.sampled_from([1, 2, 7, 64, 1 << 18]), st.integers(0, 1 << 30))
def test_what_is_taken_is_in_the_file_and_what_is_left_is_passed_over(
    value: Any, form: dict[str, Any], chunk: int, seed: int
):
    data = json.dumps(value, **form).encode("utf-8", "replace")
    value = json.loads(data)
    whole, stream._CHUNK = stream._CHUNK, chunk
    try:
        found = Stream(reading(data + b" \n " + data, random.Random(seed)))
        for _ in range(2):
            assert agrees(value, walked(found, random.Random(seed + 1)))
        assert found.begins() == ""
    finally:
        stream._CHUNK = whole


@given(VALUES, st.integers(0, 1 << 30))
def test_a_torn_document_is_refused_wherever_it_ends(value: Any, seed: int):
    data = json.dumps({"": value}).encode()
    torn = data[: random.Random(seed).randrange(len(data))]
    for read in (Stream.take, Stream.skip):
        with pytest.raises(Unreadable) as caught:
            read(Stream(io.BytesIO(torn).read))
        assert 0 <= caught.value.at <= len(torn)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"[1 2]", "delimiter"),
        (b'{"a" 1}', "delimiter"),
        (b'{"a":1,}', "property name"),
        (b"[NaN]", "NaN is not JSON"),
        (b'"\xff"', "invalid UTF-8 at byte 1"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b"[" * 100_000, "nested too deeply"),
        (b"", "a value is missing"),
    ],
)
def test_what_is_no_json_is_said_with_its_place(data: bytes, says: str):
    with pytest.raises(Unreadable, match=says):
        Stream(io.BytesIO(data).read).take()


def test_what_python_alone_writes_is_passed_over_and_read_as_a_value():
    found = Stream(io.BytesIO(b'{"a":[NaN,-Infinity],"b":{"c":NaN},"d":"\xff"}').read)
    got = {key: found.value() if key == "b" else None for key in found.members()}
    assert str(got["b"]) == "{'c': nan}"


def test_a_text_of_many_chunks_is_passed_over_and_no_larger_one_is_taken(monkeypatch: pytest.MonkeyPatch):
    long = json.dumps(['\\"' * 400_000, "é" * 300_000, 7]).encode()
    found = Stream(io.BytesIO(long).read)
    assert [found.take() for number, _ in enumerate(found.elements()) if number == 2] == [b"7"]
    monkeypatch.setattr(stream, "LARGEST", 1 << 19)
    with pytest.raises(Unreadable, match="a value of more than 524,288 bytes"):
        Stream(io.BytesIO(long).read).take()
