"""Many sessions at once: how many of them are remembered, and that each is cut and proven once."""

from __future__ import annotations

from typing import Any

import pytest

import conversations
from cutline import cut
from cutline.cutter import Cutter, prove
from cutline.memo import Memo


@pytest.mark.parametrize("format", conversations.FORMATS)
def test_forty_sessions_at_once_are_each_cut_and_proven_once(format: str, monkeypatch: pytest.MonkeyPatch):
    proven: list[bytes] = []

    def counted(before: bytes, *rest: Any) -> str:
        proven.append(before)
        return prove(before, *rest)

    monkeypatch.setattr("cutline.cutter.prove", counted)
    told = [
        [body.replace(b"Do all parts", b"Do all %d parts" % number) for body in conversations.growing(format, 6, (3,))]
        for number in range(40)
    ]
    cutter = Cutter()
    for bodies_ in zip(*told, strict=True):
        for body in bodies_:
            assert cutter.cut(body)[0].body == cut(body).body
    assert len(proven) == len(told)


def test_a_memo_forgets_beyond_its_room_all_but_the_last_few():
    told = [conversations.growing("anthropic", 6, (3,))[-1].replace(b"Do all", b"Do %d" % n) for n in range(20)]
    for memo, holds in ((Memo(), 4), (Memo(room=9 * len(told[-1])), 9), (Memo(room=10**9), 20)):
        for body in told:
            memo.cut(body)
        assert [memo.expects(body) is not None for body in told] == [False] * (20 - holds) + [True] * holds
