"""Calls that a model writes out as text: no tool ran, and the report counts the turn. Prose about them is none."""

from __future__ import annotations

from typing import Any

import pytest

from cutline.proxy.ledger import claims_without_a_call

PHANTOMS = {
    "an invoke block": '<invoke name="Bash">\n<parameter name="command">ls</parameter>\n</invoke>',
    "with words before it": 'Now I run it.\n\n<function_calls>\n<invoke name="Read">\n<parameter name="file_path">a.py</parameter>\n</invoke>\n</function_calls>',
    "with a namespace": '<function_calls>\n<invoke name="Bash">\n',
    "torn off": 'Let me look.\n<function_calls>\n<invoke name="Grep">',
    "a tool_use tag": '<tool_use>\n<name>Bash</name>\n<input>{"command": "ls"}</input>\n</tool_use>',
    "a tool_call tag with JSON": '<tool_call>\n{"name": "Bash", "arguments": {"command": "ls"}}\n</tool_call>',
    "a tool's own tag": "<Bash>\n<command>pytest -q</command>\n</Bash>",
    "an API block": '{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}',
    "an API block over lines": '{\n  "type": "tool_use",\n  "name": "Bash",\n  "input": {}\n}',
    "a list of them": '[{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}]',
    "name and input": '{"name": "Bash", "input": {"command": "ls"}}',
    "name and arguments, an MCP tool": '{"name": "mcp__cutline__recall", "arguments": {"what": "0123456789abcdef"}}',
    "in a fence for JSON": 'I call it now:\n```json\n{"name": "Read", "input": {"file_path": "a.py"}}\n```',
    "a bracketed call": "[Tool call: Bash]\ncommand: ls",
    "a bracketed use": "[Tool use: Read(file_path='a.py')]",
    "a bracketed result": "[Tool result: 12 passed]",
    "calling": "[Calling Bash with ls -la]",
    "called": "[Called the Read tool with a.py]",
    "a transcript's call": '● Bash(command="ls -la")\n  ⎿  a.py',
    "a result of one's own": "<function_results>\n12 passed\n</function_results>",
    "a tool_result tag": "Running it.\n<tool_result>\n12 passed\n</tool_result>",
    "our own tool as a function": 'micro_handoff(done="all", open="nothing", went_wrong="nothing")',
    "our own tool, whole name": 'I checkpoint now.\nmcp__cutline__micro_handoff({"done": "all"})',
}

PROSE = {
    "nothing": "",
    "ordinary words": "I read a.py because token_3 decides; I expect it near line 58.",
    "markup": 'The page has <div> and <input type="text"> inside of <form name="tool">.',
    "a template": "```html\n<tool-bar>\n  <button>Run</button>\n</tool-bar>\n```",
    "about the wire": "An assistant message holds `tool_use` blocks; each needs a `tool_result` behind it.",
    "a tag named in a sentence": 'The parser must not choke on a stray `<invoke name="x">` tag in the log.',
    "a tag named without ticks": "Models trained on it write <function_calls> as text when they are confused.",
    "code that builds a call": '```python\nblock = {"type": "tool_use", "name": "Bash", "input": {}}\n```',
    "code that builds one, alone": 'return {"type": "tool_use", "id": id_, "name": name}',
    "an example in a fence": 'A request looks like this:\n\n```xml\n<invoke name="Bash">\n<parameter name="command">ls</parameter>\n</invoke>\n```\n\nThe parser reads it.',
    "an API example in a fence, explained": 'The body is:\n```json\n{"type": "tool_use", "name": "get_weather", "input": {"city": "Paris"}}\n```\nand the answer names its id.',
    "package.json": '```json\n{"name": "left-pad", "version": "1.0.0"}\n```',
    "JSON with a name and input": '{"name": "conv1", "inputs": ["x"], "outputs": ["y"]}',
    "a config": '{\n  "name": "deploy",\n  "on": "push"\n}',
    "brackets": "[Tools] and [Tool] are sections; [calling convention] is a term.",
    "a list of links": "[Tool reference](docs/tools.md), [Calling the API](docs/api.md)",
    "a shell function": "foo() { bar; }\nread(file)",
    "a Python call": "```python\nrecall(y_true, y_pred)\n```",
    "a metric": "recall(macro) is 0.91, precision 0.88.",
    "Rust generics": "fn run<Bash>(x: Vec<Read>) -> Option<Task>",
    "markdown table": "| tool | use |\n|---|---|\n| Bash | run |",
    "a result told": "The tool result says 12 passed, 0 failed.",
    "a say in prose": "I say (again) that all parts agree.",
}


def answer(*texts: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in texts] + [{"type": kind} for kind in more]


@pytest.mark.parametrize("text", PHANTOMS.values(), ids=PHANTOMS.keys())
def test_a_call_written_out_is_counted(text: str):
    assert claims_without_a_call(answer(text))
    assert claims_without_a_call(answer("First some words.", text))


@pytest.mark.parametrize("text", PHANTOMS.values(), ids=PHANTOMS.keys())
def test_a_turn_that_really_calls_is_none(text: str):
    assert not claims_without_a_call(
        [*answer(text), {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}]
    )


@pytest.mark.parametrize("text", PROSE.values(), ids=PROSE.keys())
def test_prose_and_code_about_calls_are_not_counted(text: str):
    assert not claims_without_a_call(answer(text))


def test_what_is_only_thought_is_not_counted():
    thought = {"type": "thinking", "thinking": PHANTOMS["an invoke block"], "signature": "x"}
    assert not claims_without_a_call([thought, *answer("All parts agree.")])
