"""Trajectories and logs as the tools themselves write them now: installed, run against scripted models, read."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from cutline.sessions import clients
from cutline.sessions.model import Session
from test_trajectories import outline

pytestmark = pytest.mark.slow

INSPECT = """
import base64, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, ModelOutput, ModelUsage, get_model
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import ToolError, tool

@tool
def add():
    async def execute(x: int, y: int):
        '''Add.

        Args:
            x: One.
            y: Another.
        '''
        if x > 5:
            raise ToolError("too large")
        return f"the sum is {x + y}" + " and so on" * 40
    return execute

def answers():
    told = [
        ModelOutput.for_tool_call("mockllm/model", "add", {"x": 1, "y": 2}, content="I add, \\u00e9."),
        ModelOutput.for_tool_call("mockllm/model", "add", {"x": 7, "y": 2}, content="Now seven."),
        ModelOutput.from_content("mockllm/model", "Three; seven was too large."),
    ]
    for one in told:
        one.usage = ModelUsage(input_tokens=11, output_tokens=5, total_tokens=20, input_tokens_cache_read=4)
    return told

picture = "data:image/png;base64," + base64.b64encode(b"0" * 300).decode()
asked = ChatMessageUser(content=[ContentText(text="Sum? " * 40), ContentImage(image=picture)])
for form in ("eval", "json"):
    task = Task(dataset=[Sample(input=[asked], id="a b/c"), Sample(input="Sum?", id=7)],
                solver=[use_tools(add()), generate()], name="sums")
    (log,) = eval(task, model=get_model("mockllm/model", custom_outputs=answers() * 2), log_dir=sys.argv[1],
                  display="none", log_format=form, max_samples=1)
    assert log.status == "success", log.error
try:
    from inspect_ai.log._recorders.chunked.convert import convert_eval_logs_to_chunked
except ImportError:
    sys.exit()
convert_eval_logs_to_chunked(sys.argv[1], sys.argv[1] + "/chunked", chunk_size=2)
"""

MINI = """
import os, sys
from pathlib import Path
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models import test_models as models

done = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
def run(model, name):
    output = Path(sys.argv[1]) / f"{name}.traj.json"
    templates = {"system_template": "SYS", "instance_template": "{{task}}", "output_path": output}
    DefaultAgent(model, LocalEnvironment(), **templates).run("Count, \\u00e9.")

def fenced(command):
    return models.make_output(f"I run.\\n\\n```mswea_bash_command\\n{command}\\n```", [{"command": command}])

run(models.DeterministicModel(outputs=[fenced("echo hi"), fenced(done)]), "text")
def call(id, command):
    inside = {"name": "bash", "arguments": '{"command": "%s"}' % command}
    made = [{"id": id, "type": "function", "function": inside}]
    return models.make_toolcall_output("I run.", made, [{"command": command, "tool_call_id": id}])

run(models.DeterministicToolcallModel(outputs=[call("a", "echo hi"), call("b", done)]), "calls")
def item(id, command):
    return models.make_response_api_output("I run.", [{"command": command, "tool_call_id": id}])

run(models.DeterministicResponseAPIToolcallModel(outputs=[item("a", "echo hi"), item("b", done)]), "responses")
"""

OPENHANDS = """
import json, sys, uuid
from collections.abc import Sequence
from openhands.sdk import Agent, Conversation, Tool
from openhands.sdk.context.view import View
from openhands.sdk.event.base import LLMConvertibleEvent
from openhands.sdk.event.condenser import Condensation
from openhands.sdk.llm import Message, MessageToolCall, TextContent
from openhands.sdk.testing import TestLLM
from openhands.sdk.tool import ToolDefinition, ToolExecutor, register_tool
from openhands.sdk.tool.schema import Action, Observation

class EchoAction(Action):
    what: str

class EchoObservation(Observation):
    pass

class Executor(ToolExecutor):
    def __call__(self, action, conversation=None):
        return EchoObservation.from_text("echo: " + action.what, is_error=action.what == "bad")

class EchoTool(ToolDefinition[EchoAction, EchoObservation]):
    @classmethod
    def create(cls, conv_state=None, **kept) -> Sequence["EchoTool"]:
        return [cls(description="echo", action_type=EchoAction, observation_type=EchoObservation, executor=Executor())]

register_tool("EchoTool", EchoTool)

def call(id, what, name="echo"):
    return MessageToolCall(id=id, name=name, arguments=json.dumps({"what": what}), origin="completion")

def say(text, *calls):
    return Message(role="assistant", content=[TextContent(text=text)], tool_calls=list(calls))

told = [say("one", call("c1", "a")), say("two", call("c2", "b"), call("c3", "bad"), call("c4", "x", "nope")),
        say("three."), say("four", call("c5", "d")), say("five."), say("six.")]
talk = Conversation(agent=Agent(llm=TestLLM.from_messages(told), tools=[Tool(name="EchoTool")]),
                    workspace=sys.argv[1], persistence_dir=sys.argv[1] + "/conversations",
                    conversation_id=uuid.UUID(int=8), visualizer=None)
talk.send_message("first, \\u00e9")
talk.run()
kept = [event for event in talk.state.events if type(event).__name__ in ("ActionEvent", "ObservationEvent")]
with talk.state:
    talk.state.append_event(Condensation(forgotten_event_ids={event.id for event in kept[:2]}, summary="They ran.",
                                         summary_offset=2, llm_response_id="x"))
talk.send_message("second")
talk.run()
said = [event for event in talk.state.events if type(event).__name__ == "MessageEvent"]
talk.navigate_to(said[-2].id)
talk.send_message("third")
talk.run()
seen = View.from_events(talk.state.active_branch()).events
sent = LLMConvertibleEvent.events_to_messages(list(seen))
json.dump([[one.role, "".join(part.text for part in one.content), [made.id for made in one.tool_calls or ()],
            one.tool_call_id or ""] for one in sent], open(sys.argv[1] + "/sent.json", "w"))
"""


def run(folder: Path, package: str, script: str, python: str = "3.11") -> Path:
    """Install a tool in a place of its own and run a script with it; gives the folder that it wrote into."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not on this machine")
    place = folder / "tool"
    for command in (
        [uv, "venv", "--quiet", "--python", f">={python}", str(place)],
        [uv, "pip", "install", "--quiet", "--python", str(place), package],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            pytest.skip(f"{package} can't be installed here: {done.stderr.strip().splitlines()[-1:]}")
    out = folder / "out"
    out.mkdir()
    (folder / "script.py").write_text(script)
    program = place / "bin" / "python"
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "MSWEA_SILENT_STARTUP": "1",
        "OPENHANDS_SUPPRESS_BANNER": "1",
    }
    done = subprocess.run(
        [str(program), str(folder / "script.py"), str(out)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return out


def test_the_logs_that_inspect_writes_now(tmp_path: Path):
    out = run(tmp_path, "inspect-ai", INSPECT)
    logs = sorted(path for path in out.rglob("*") if path.suffix in (".eval", ".json"))
    assert {path.suffix for path in logs} == {".eval", ".json"}
    for path in logs:
        for part in ("7", "a b/c"):
            session = clients.open_path(path, part)
            told = outline(session)
            assert [line[0] for line in told] == ["h", "a", "r", "a", "r", "a"]
            assert ("Sum? " * 40 + " image" if part != "7" else "Sum?") in told[0]
            assert told[1].startswith("a: I add, é. +") and told[1].endswith(' add {"x": 1, "y": 2}')
            assert "the sum is 3" + " and so on" * 40 in told[2] and "! too large" in told[4]
            assert [made.usage.cache_read for made in session.history.requests] == [4, 4, 4]
            assert session.damage == () and session.title == f"sums, sample {part}" and session.version


def test_the_trajectories_that_mini_swe_agent_writes_now(tmp_path: Path):
    out = run(tmp_path, "mini-swe-agent", MINI)
    for name, id_ in {"text": "", "calls": "a", "responses": "a"}.items():
        session = clients.open_path(out / f"{name}.traj.json")
        told = outline(session)
        assert told[:3] == ['h: ["SYS"]', "h: Count, é.", f'a: I run. +{id_} bash {{"command": "echo hi"}}']
        assert told[3].startswith(f"r: -{id_} ") and "hi" in told[3]
        assert session.version and session.history.human == [1] and len(told) == 6


def test_the_conversations_that_openhands_sdk_writes_now(tmp_path: Path):
    """Condensed, and gone back in: the history is what the SDK itself would send."""
    out = run(tmp_path, "openhands-sdk", OPENHANDS, "3.12")
    (conversation,) = (out / "conversations").iterdir()
    session = clients.open_path(sorted((conversation / "events").glob("event-*"))[0])
    assert sent(session) == joined(out / "sent.json")
    assert session.cwd == str(out) and session.history.compacted


def sent(session: Session) -> list[tuple[str, str, list[str], str]]:
    """A history as messages of a chat, neighbours of one role as one, as the SDK joins them; the system's aside."""
    found: list[tuple[str, str, list[str], str]] = []
    for message in json.loads(session.history.body)["messages"]:
        for block in message["content"]:
            if block["type"] == "tool_result":
                content = block["content"]
                words = content if isinstance(content, str) else "".join(part["text"] for part in content)
                found.append(("tool", words, [], block["tool_use_id"]))
            elif block["type"] in ("text", "tool_use"):
                _join(found, message["role"], block.get("text", ""), [block["id"]] if "id" in block else [])
    return found


def joined(path: Path) -> list[tuple[str, str, list[str], str]]:
    found: list[tuple[str, str, list[str], str]] = []
    for role, words, calls, answers in json.loads(path.read_text()):
        if role == "tool":  # what the SDK says before a failed result is made when it is sent, and in no file
            found.append((role, words.removeprefix("[An error occurred during execution.]\n"), calls, answers))
        elif role != "system":
            _join(found, role, words, calls)
    return found


def _join(found: list[tuple[str, str, list[str], str]], role: str, words: str, calls: list[str]) -> None:
    if found and found[-1][0] == role:
        role, before, made, _ = found.pop()
        words, calls = before + words, made + calls
    found.append((role, words, calls, ""))
