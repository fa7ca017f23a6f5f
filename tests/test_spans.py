"""JSON as the reader sees it: what is JSON, what is not, and where everything stands.

The cases are named in json_cases.py. The standard library's parser on text is the oracle; where we differ from
it, the difference is named and meant.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutline import cut, spans
from cutline.errors import Unreadable
from cutline.wire import anthropic
from json_cases import ACCEPTED, DEEP, DIFFERENCES, HUGE, REFUSED


def value(data: bytes) -> Any:
    """What the reader makes of a whole JSON text: objects as tuples of pairs, numbers as literals."""
    text = spans.view(data)
    try:
        found, end = spans.scan(text, spans.skip(text, 0))
        if spans.skip(text, end) != len(text):
            raise Unreadable("more bytes behind the value", end)
    except spans.DOUBTS as error:
        raise spans.doubt(error, text) from None
    return found


def is_json(data: bytes) -> bool:
    try:
        value(data)
    except Unreadable as error:
        assert 0 <= error.at <= len(data)
        assert "\n" not in str(error)
        return False
    return True


def oracle(data: bytes) -> bool:
    """The standard library's word on strict JSON in UTF-8."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(data.decode("utf-8"), parse_constant=refuse)
    except ValueError:
        return False
    return True


def named(table: dict[str, Any]) -> Any:
    return pytest.mark.parametrize("case", table.values(), ids=table.keys())


# ------------------------------------------------------------------------------- what is JSON, what is not


@named(ACCEPTED | HUGE)
def test_json_is_accepted(case: bytes) -> None:
    assert is_json(case)


@named(REFUSED)
def test_what_is_not_json_is_refused(case: bytes) -> None:
    assert not is_json(case)


@pytest.mark.parametrize("name", [*ACCEPTED, *REFUSED, *HUGE])
def test_the_standard_parser_agrees_but_for_what_is_named(name: str) -> None:
    case = (ACCEPTED | REFUSED | HUGE)[name]
    assert (is_json(case) != oracle(case)) == (name in DIFFERENCES)


@named(DEEP)
def test_deep_nesting_is_read_or_refused_and_never_a_crash(case: bytes) -> None:
    # How deep an interpreter reads is its own affair; 3.11 stops at about a thousand levels.
    if not is_json(case):
        with pytest.raises(Unreadable, match="nested too deeply"):
            value(case)


def test_every_body_that_was_cut_short_is_refused() -> None:
    whole = '{"a":[1.5e+3,"é\\u00e9\\n",{"b":null}],"c":{"d":-0,"e":[true,false]} }'.encode()
    assert is_json(whole)
    assert [size for size in range(len(whole)) if is_json(whole[:size])] == []


# -------------------------------------------------------- the same through the format's reader and the cut

CHECKPOINT = (
    b'{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash",'
    b'"input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"out"}]},'
    b'{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"micro_handoff","input":{}}]},'
    b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"stored"}]}'
)
PLACES = {
    "a member of the body": b'{"x":%s,"messages":[' + CHECKPOINT + b"]}",
    "a member behind the messages": b'{"messages":[' + CHECKPOINT + b'],"x":%s}',
    "a member of a message": b'{"messages":[{"role":"user","content":"go","x":%s},' + CHECKPOINT + b"]}",
    "a member of a block": b'{"messages":[{"role":"user","content":[{"type":"text","text":"go","x":%s}]},'
    + CHECKPOINT
    + b"]}",
    "a call's arguments": b'{"messages":['
    + CHECKPOINT.replace(b'"name":"Bash","input":{}', b'"name":"Bash","input":%s')
    + b"]}",
    "a result's content": b'{"messages":[' + CHECKPOINT.replace(b'"out"', b"%s") + b"]}",
    "behind the seam": b'{"messages":['
    + CHECKPOINT
    + b',{"role":"assistant","content":[{"type":"text","text":"on","x":%s}]}]}',
}


@named(PLACES)
def test_json_anywhere_in_a_body_does_not_stop_the_cut(case: bytes) -> None:
    for name, literal in (ACCEPTED | HUGE).items():
        done = cut(case.replace(b"%s", literal))
        assert done.changed, (name, done.reason)


@named(PLACES)
def test_a_doubt_anywhere_in_a_body_leaves_it_the_very_same_with_the_reason(case: bytes) -> None:
    for name, literal in REFUSED.items():
        body = case.replace(b"%s", literal)
        with pytest.raises(Unreadable):
            anthropic.read(body)
        done = cut(body)
        assert done.body is body and not done.changed, name
        assert done.reason.startswith("the body was left as it is: "), name


@named(DEEP)
def test_a_deep_body_is_cut_or_left_as_it_is(case: bytes) -> None:
    for place in PLACES.values():
        body = place.replace(b"%s", case)
        done = cut(body)
        assert done.changed or (done.body is body and "too deep" in done.reason)


def test_every_level_of_nesting_is_cut_or_left_as_it_is() -> None:
    # Around the depth where the interpreter's stack ends, reading may still fit and what follows may not.
    for depth in range(850, 1_020):
        for name in ("a call's arguments", "a result's content", "a member of a message"):
            body = PLACES[name].replace(b"%s", b"[" * depth + b"]" * depth)
            done = cut(body)
            assert done.changed or (done.body is body and "too deep" in done.reason), (depth, name)


@pytest.mark.parametrize("body", [b"", b" ", b"[]", b"1", b'"micro_handoff"', b"\x00micro_handoff", b"micro_handoff"])
def test_what_is_no_object_is_left_as_it_is(body: bytes) -> None:
    done = cut(body)
    assert done.body is body and done.reason


def test_a_body_cut_short_at_any_byte_is_left_as_it_is() -> None:
    whole = b'{"messages":[' + CHECKPOINT + b'],"model":"m"}'
    assert cut(whole).changed
    for size in range(len(whole)):
        body = whole[:size]
        assert cut(body).body is body
        if size:
            with pytest.raises(Unreadable):
                anthropic.read(body)


STEERING = {
    "messages": (b'{"messages":[', b'{"messages":[],"messages":['),
    "messages, once in escapes": (b'{"messages":[', b'{"mess\\u0061ges":[],"messages":['),
    "model": (b'{"messages":[', b'{"model":"a","model":"a","messages":['),
    "role": (b'"role":"assistant"', b'"role":"assistant","role":"assistant"'),
    "content of a message": (b'"content":"go"', b'"content":"go","content":"go"'),
    "type": (b'"type":"tool_use"', b'"type":"tool_use","type":"tool_use"'),
    "id": (b'"id":"a"', b'"id":"a","id":"a"'),
    "name": (b'"name":"Bash"', b'"name":"Bash","name":"Bash"'),
    "name, once in escapes": (b'"name":"Bash"', b'"n\\u0061me":"Bash","name":"Bash"'),
    "input": (b'"input":{}', b'"input":{},"input":{}'),
    "tool_use_id": (b'"tool_use_id":"a"', b'"tool_use_id":"a","tool_use_id":"a"'),
    "content of a result": (b'"content":"out"', b'"content":"out","content":"out"'),
    "is_error": (b'"content":"out"', b'"content":"out","is_error":false,"is_error":true'),
}


@named(STEERING)
def test_a_key_that_steers_and_stands_twice_is_a_doubt(case: tuple[bytes, bytes]) -> None:
    body = (b'{"messages":[' + CHECKPOINT + b"]}").replace(*case, 1)
    assert is_json(body)
    done = cut(body)
    assert done.body is body
    assert "twice" in done.reason


def test_a_key_that_steers_nothing_may_stand_twice() -> None:
    body = b'{"messages":[' + CHECKPOINT.replace(b'"input":{}', b'"input":{"a":1,"a":2}') + b'],"x":1,"x":2}'
    assert cut(body).changed


# -------------------------------------------------------------------------------------------------- spans


@named({name: data for name, data in (ACCEPTED | HUGE).items() if data.strip()[:1] in (b"{", b"[")})
def test_spans_of_members_and_elements_hold_what_the_standard_parser_says(case: bytes) -> None:
    text = spans.view(case)
    start = spans.skip(text, 0)
    whole = json.loads(case.decode(), object_pairs_hook=list, parse_int=str, parse_float=str)
    if text[start] == "{":
        members, end = spans.members(text, start)
        # Keys come from the latin-1 view; ASCII ones and escapes are what they say.
        assert [m.key.encode("latin-1").decode() if max(m.key, default="") < "\u0100" else m.key for m in members] == [
            key for key, _ in whole
        ]
        found = [case[m.start : m.end] for m in members]
        values = [value for _, value in whole]
        assert all(case[m.at : m.at + 1] == b'"' for m in members)
    else:
        elements, end = spans.elements(text, start)
        found = [case[first:last] for first, last in elements]
        values = whole
    assert case[end:].strip() == b""
    assert [json.loads(f.decode(), object_pairs_hook=list, parse_int=str, parse_float=str) for f in found] == values
    assert all(literal == literal.strip() for literal in found)


@pytest.mark.parametrize("data", [b"1", b'"a"', b"null", b"[1]", b" {}"])
def test_members_are_an_objects(data: bytes) -> None:
    with pytest.raises(ValueError, match="an object is expected"):
        spans.members(data.decode(), 0)


@pytest.mark.parametrize("data", [b"1", b'"a"', b"null", b"{}", b" []"])
def test_elements_are_an_arrays(data: bytes) -> None:
    with pytest.raises(ValueError, match="an array is expected"):
        spans.elements(data.decode(), 0)


@named({name: data for name, data in REFUSED.items() if data[:1] in (b"{", b"[") and data.isascii()})
def test_walks_refuse_what_the_scanner_refuses(case: bytes) -> None:
    walk = spans.members if case[:1] == b"{" else spans.elements
    text = case.decode()
    with pytest.raises(spans.DOUBTS):
        _, end = walk(text, 0)
        if spans.skip(text, end) != len(text):
            raise ValueError


# ----------------------------------------------------------------------------------------- the UTF-8 check

BORDER = 1 << 16


@pytest.mark.parametrize("character", ["é", "€", "😀"])
@pytest.mark.parametrize("before", range(5))
def test_a_character_on_the_border_of_a_chunk_is_whole(character: str, before: int) -> None:
    data = b"a" * (BORDER - before) + character.encode() * 3 + b"b" * BORDER
    assert spans.view(data) == data.decode("latin-1")


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf"])
@pytest.mark.parametrize("before", range(5))
@pytest.mark.parametrize("behind", [b"", b"a", b"a" * BORDER, "é".encode() * BORDER])
def test_a_bad_byte_on_the_border_of_a_chunk_is_found_where_it_stands(bad: bytes, before: int, behind: bytes) -> None:
    good = b"a" * (BORDER - before - 2) + "é".encode()
    with pytest.raises(Unreadable) as refusal:
        spans.view(good + bad + behind)
    assert refusal.value.at == len(good)


@pytest.mark.parametrize("start", [0, 1, 10, BORDER, BORDER + 1])
def test_the_check_begins_where_it_is_told(start: int) -> None:
    with pytest.raises(Unreadable) as refusal:
        spans.view(b"a" * (2 * BORDER) + b"\xff", start)
    assert refusal.value.at == 2 * BORDER
    assert len(spans.view(b"\xff" * start + "é".encode(), start)) == start + 2


@given(st.binary(max_size=12), st.integers(0, 6))
def test_the_check_in_chunks_agrees_with_the_whole(bad: bytes, back: int) -> None:
    data = b"a" * (BORDER - back) + bad + b"a"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        with pytest.raises(Unreadable) as refusal:
            spans.view(data)
        assert refusal.value.at == error.start
    else:
        assert spans.view(data) == data.decode("latin-1")


# ------------------------------------------------------------------------------------------ canonical form


@pytest.mark.parametrize(
    ("literal", "canonical"),
    [
        (b'{"b":1,"a":2}', b'{"a":2,"b":1}'),
        (b' { "a" : [ 1 , 2 ] }\n', b'{"a":[1,2]}'),
        (b"{}", b"{}"),
        (b'{"b":{"d":1,"c":[]},"a":{}}', b'{"a":{},"b":{"c":[],"d":1}}'),
        (rb'{"\u0061":"\u00e9\/"}', rb'{"a":"\u00e9/"}'),
        ('{"a":"é"}'.encode(), rb'{"a":"\u00e9"}'),
        ('{"a":"😀"}'.encode(), rb'{"a":"\ud83d\ude00"}'),
        (rb'{"a":"\uD83D"}', rb'{"a":"\ud83d"}'),
        (b'{"a":1.0,"b":1,"c":1e0,"d":-0,"e":"1"}', b'{"a":1.0,"b":1,"c":1e0,"d":-0,"e":"1"}'),
        (b"[true,false,null]", b"[true,false,null]"),
        (b'{"a":' + b"9" * 5_000 + b"}", b'{"a":' + b"9" * 5_000 + b"}"),
        (b'{"a":2,"b":0,"a":1}', b'{"a":2,"a":1,"b":0}'),
        ('{"\uff5e":1,"😀":2,"a":3}'.encode(), rb'{"a":3,"\uff5e":1,"\ud83d\ude00":2}'),
    ],
)
def test_canonical_is_one_spelling_with_numbers_as_written(literal: bytes, canonical: bytes) -> None:
    assert spans.canonical(literal) == canonical
    assert spans.canonical(canonical) == canonical


@named(REFUSED)
def test_canonical_gives_back_what_cannot_be_parsed(case: bytes) -> None:
    assert spans.canonical(case) == case


@named(DEEP)
def test_canonical_never_fails(case: bytes) -> None:
    assert spans.canonical(case) in (case, case.replace(b" ", b""))


def test_one_and_the_text_of_one_differ() -> None:
    assert len({spans.canonical(literal) for literal in (b"[1]", b'["1"]', b"[1.0]", b"[1e0]")}) == 4


# --------------------------------------------------------------------------------------------- properties

texts = st.text(max_size=20)
unpaired = st.text(
    st.characters(min_codepoint=0xD800, max_codepoint=0xDBFF, categories=["Cs"]) | st.just("a"), max_size=4
)
numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.integers(10**18, 10**30))
values = st.recursive(
    st.none() | st.booleans() | numbers | texts | unpaired,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
spellings = st.sampled_from(
    [
        {"separators": (",", ":")},
        {"separators": (", ", ": ")},
        {"indent": 1},
        {"separators": (" ,\t", "\n:\r")},
    ]
)


def spelled(item: Any, spelling: dict[str, Any], ascii_only: bool) -> bytes:
    text = json.dumps(item, ensure_ascii=ascii_only, **spelling)
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate can only be written as an escape
        return json.dumps(item, **spelling).encode()


@given(values, spellings, st.booleans())
def test_what_any_writer_writes_is_read_with_the_right_spans(
    item: Any, spelling: dict[str, Any], ascii_only: bool
) -> None:
    data = b" " + spelled(item, spelling, ascii_only) + b"\n"
    text = spans.view(data)
    if isinstance(item, dict):
        members, end = spans.members(text, 1)
        assert [json.loads(data[m.start : m.end].decode()) for m in members] == list(item.values())
    elif isinstance(item, list):
        elements, end = spans.elements(text, 1)
        assert [json.loads(data[first:last].decode()) for first, last in elements] == item
    else:
        end = spans.scan(text, 1)[1]
    assert end == len(data) - 1


@given(values, spellings, st.booleans())
def test_an_address_does_not_depend_on_the_spelling(item: Any, spelling: dict[str, Any], ascii_only: bool) -> None:
    one = spans.canonical(spelled(item, spelling, ascii_only))
    assert one == spans.canonical(json.dumps(item).encode())
    assert json.loads(one) == json.loads(json.dumps(item))
    assert one.isascii()


@given(values, st.integers(0), st.integers(0, 255))
def test_one_byte_changed_is_judged_as_the_standard_parser_judges(item: Any, at: int, byte: int) -> None:
    data = bytearray(json.dumps(item, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    data[at % len(data)] = byte
    assert is_json(bytes(data)) == oracle(bytes(data))


@given(st.binary(max_size=30) | st.text('{}[]",:\\u0123eE+-.tfn \n', max_size=30).map(str.encode))
def test_noise_is_judged_as_the_standard_parser_judges(data: bytes) -> None:
    assert is_json(data) == oracle(data)
    spans.canonical(data)
    if not oracle(data):
        assert cut(data + b"micro_handoff").body == data + b"micro_handoff"


@given(texts | unpaired)
def test_a_quoted_text_is_ascii_and_comes_back(text: str) -> None:
    literal = spans.quote(text)
    assert literal.isascii()
    assert spans.decode(literal) == text
    assert json.loads(literal) == text
    assert spans.decode(b'"' + literal[1:-1] + b'"') == text


@given(values)
def test_decode_gives_values_with_numbers_as_they_are_written(item: Any) -> None:
    assert spans.decode(json.dumps(item).encode()) == json.loads(json.dumps(item), parse_int=str, parse_float=str)
