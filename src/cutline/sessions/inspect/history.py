"""A sample's messages as a history.

Law: the human's words are the input of the sample, which its log marks so; what a solver says in the user's place while
the agent works is the harness's.
"""

from __future__ import annotations

from ... import spans
from ..lines import Opened
from ..model import Origin
from ..talk import Talk, word
from .sample import Sample


def history(sample: Sample) -> Talk:
    """Make a history of a sample."""
    talk = Talk()
    messages = [Opened(raw) for raw in sample.resolved()]
    marked = any(_source(opened) == "input" for opened in messages)
    answered = False
    for number, opened in enumerate(messages):
        members = opened.members()
        role, content = word(opened, members.get("role")), members.get("content")
        if role == "assistant":
            answered = True
            _agent(talk, number, opened, members, sample)
        elif role == "tool":
            _result(talk, number, opened, members)
        elif role == "user":
            asked = _source(opened) == "input" if marked else not answered
            origin: Origin = "human" if asked else "harness"
            talk.content(origin, opened, content, number)
        elif role == "system":
            talk.content("harness", opened, content, number)
        else:
            talk.out.control(opened.raw, (number, 0))
    return talk


def _source(opened: Opened) -> str:
    members = opened.members()
    return word(opened, members.get("source")) if word(opened, members.get("role")) == "user" else ""


def _agent(talk: Talk, number: int, opened: Opened, members: dict[str, spans.Member], sample: Sample) -> None:
    talk.reasoning(opened.literal(members.get("reasoning")), (number, 0))  # logs before reasoning was a part
    talk.content("agent", opened, members.get("content"), number)
    talk.calls(opened, members.get("tool_calls"), number)
    talk.out.model = word(opened, members.get("model")) or talk.out.model
    usage, model, when = sample.usages.get(word(opened, members.get("id")), ({}, "", ""))
    if usage and talk.out.places and talk.out.places[-1][-1][0] == number:
        counted = {
            "input_tokens": usage.get("input_tokens"),
            "output_tokens": usage.get("output_tokens"),
            "cache_read_input_tokens": usage.get("input_tokens_cache_read"),
            "cache_creation_input_tokens": usage.get("input_tokens_cache_write"),
        }
        talk.counted(counted, model, when, word(opened, members.get("id")))


def _result(talk: Talk, number: int, opened: Opened, members: dict[str, spans.Member]) -> None:
    content, error = members.get("content"), opened.inside(members.get("error"))
    told = error.get("message")
    if error and opened.literal(content) in (b"", b'""', b"[]"):
        content = told  # what the model is sent of a call that failed
    talk.result(word(opened, members.get("tool_call_id")), opened, content, (number, 0), error=bool(error))
