"""What a client is started with: the user's arguments, settings and environment, and what a run adds to them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cutline import mandate
from cutline.errors import InputError
from cutline.launch import claude_code, claude_settings
from cutline.launch.claude_code import asked, compose, upstream
from cutline.launch.start import Start, Wish

ADDRESS = "http://127.0.0.1:4711/t0ken"
LOOPBACK = "http://127.0.0.1:9"


def start(
    *arguments: str,
    wish: Wish = Wish(record="/data/record.db"),  # noqa: B008
    given: dict[str, Any] | None = None,
    provider: str = claude_code.DEFAULT_UPSTREAM,
    line: dict[str, Any] | None = None,
    environment: dict[str, str] | None = None,
    shows: bool = True,
) -> Start:
    return compose(
        asked(arguments),
        wish,
        address=ADDRESS,
        provider=provider,
        folder="/run/x",
        python="/usr/bin/python3",
        given=given or {},
        status_line=line,
        environment=environment or {},
        shows_thinking=shows,
    )


def settings(made: Start) -> dict[str, Any]:
    held: dict[str, Any] = json.loads(made.files["settings.json"])
    return held


class TestTheUsersArguments:
    def test_stand_behind_ours_as_they_were_given(self):
        made = start("-p", "say hi", "--model", "opus")
        assert made.arguments[-4:] == ("-p", "say hi", "--model", "opus")

    def test_ours_carry_their_values_with_an_equals_sign(self):
        # An option that takes several values would take the prompt for one of them.
        ours = start("hi").arguments[:-1]
        assert all(word.startswith("--") and "=" in word for word in ours)

    @pytest.mark.parametrize("form", [("--append-system-prompt", "Be kind."), ("--append-system-prompt=Be kind.",)])
    def test_an_appended_prompt_comes_first_and_the_mandate_behind_it(self, form: tuple[str, ...]):
        made = start(*form, "-p", "hi")
        words = [word for word in made.arguments if word.startswith("--append-system-prompt")]
        assert words == [f"--append-system-prompt=Be kind.\n\n{mandate.MANDATE}"]

    def test_a_prompt_out_of_a_file_comes_before_it(self):
        made = compose(
            asked(["--append-system-prompt-file", "x.md", "--append-system-prompt=Be kind.", "-p", "hi"]),
            Wish(),
            address=ADDRESS,
            provider=claude_code.DEFAULT_UPSTREAM,
            folder="/run/x",
            python="/usr/bin/python3",
            given={},
            appended="From the file.",
            status_line=None,
            environment={},
            shows_thinking=True,
        )
        words = [word for word in made.arguments if word.startswith("--append-system-prompt")]
        assert words == [f"--append-system-prompt=From the file.\n\nBe kind.\n\n{mandate.MANDATE}"]

    def test_behind_two_dashes_nothing_is_looked_at(self):
        made = start("-p", "--", "--settings", "x")
        assert made.arguments[-3:] == ("--", "--settings", "x")

    def test_a_display_of_thinking_that_was_asked_for_stays(self):
        assert not any("summarized" in word for word in start("--thinking-display", "omitted").arguments)
        assert "--thinking-display=summarized" in start().arguments
        assert not any("thinking" in word for word in start(shows=False).arguments if "append" not in word)

    @pytest.mark.parametrize("word", ["mcp", "update", "doctor", "plugin"])
    def test_a_subcommand_starts_no_session(self, word: str):
        with pytest.raises(InputError, match=f"type: claude {word} list"):
            asked([word, "list"])

    def test_a_value_that_is_missing_is_said(self):
        with pytest.raises(InputError, match="--settings needs a value"):
            asked(["-p", "--settings"])


HOOK = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}


class TestTheSettings:
    def test_hold_the_users_and_ours(self):
        given = {
            "model": "opus",
            "env": {"A": "1", "ANTHROPIC_BASE_URL": "https://elsewhere.example"},
            "permissions": {"allow": ["Bash(ls)"], "deny": ["Read(.env)"]},
            "hooks": {"PostToolUse": [HOOK], "Stop": [HOOK]},
        }
        made = settings(start(given=given))
        assert made["model"] == "opus"
        assert made["env"] == {"A": "1", "ANTHROPIC_BASE_URL": ADDRESS}
        assert made["permissions"] == {"allow": ["Bash(ls)", *claude_code.TOOLS], "deny": ["Read(.env)"]}
        assert made["hooks"]["PostToolUse"][0] == HOOK and len(made["hooks"]["PostToolUse"]) == 2
        assert made["hooks"]["Stop"] == [HOOK]

    def test_do_not_change_what_was_given(self):
        given = {"hooks": {"PostToolUse": [HOOK]}}
        start(given=given)
        assert given == {"hooks": {"PostToolUse": [HOOK]}}

    @pytest.mark.parametrize(
        "broken", [{"hooks": []}, {"permissions": 1}, {"env": "x"}, {"hooks": {"PostToolUse": {}}}]
    )
    def test_of_a_wrong_shape_stop_nothing(self, broken: dict[str, Any]):
        assert settings(start(given=broken))["permissions"]["allow"][-1] == claude_code.TOOLS[-1]

    def test_the_mandate_is_text_only_unless_it_is_asked_for(self):
        assert "PreToolUse" not in settings(start())["hooks"]
        for how in ("nudge", "strict"):
            (entry,) = settings(start(wish=Wish(how)))["hooks"]["PreToolUse"]  # type: ignore[arg-type]
            assert entry["hooks"][0] == {"type": "http", "url": f"{ADDRESS}/cutline/hook/before-call", "timeout": 5}

    def test_compaction_is_left_alone_if_that_is_asked_for(self):
        held = settings(start(wish=Wish(keep_compaction=True)))["hooks"]
        assert set(held) == {"SessionStart"}
        assert settings(start())["hooks"]["PreCompact"][0]["matcher"] == "auto"

    def test_the_users_status_line_is_kept_beside_ours(self):
        line = {"type": "command", "command": "echo mine", "padding": 0}
        made = start(line=line)
        assert json.loads(made.files["statusline.json"]) == line
        assert settings(made)["statusLine"]["padding"] == 0
        assert settings(made)["statusLine"]["command"].endswith("-P -m cutline status --line")

    def test_tools_stay_in_view_and_know_their_record(self):
        server = json.loads(start().files["mcp.json"])["mcpServers"]["cutline"]
        assert server["alwaysLoad"] is True and server["env"]["CUTLINE_RECORD"] == "/data/record.db"
        assert server["args"] == ["-P", "-m", "cutline", "mcp"]


class TestTheEnvironment:
    def test_leads_to_the_proxy_and_past_the_users_own(self):
        made = start(environment={"NO_PROXY": "corp.example"}).environment
        assert made["ANTHROPIC_BASE_URL"] == ADDRESS
        assert made["NO_PROXY"] == made["no_proxy"] == "corp.example,127.0.0.1,localhost"

    def test_tool_search_is_what_the_provider_itself_would_get(self):
        assert start().environment["ENABLE_TOOL_SEARCH"] == "true"
        assert "ENABLE_TOOL_SEARCH" not in start(provider="https://gateway.example").environment
        assert "ENABLE_TOOL_SEARCH" not in start(environment={"ENABLE_TOOL_SEARCH": "false"}).environment

    @pytest.mark.parametrize(
        ("layers", "environment", "wanted"),
        [
            ([], {}, claude_code.DEFAULT_UPSTREAM),
            ([], {"ANTHROPIC_BASE_URL": "https://a.example"}, "https://a.example"),
            (
                [{"env": {"ANTHROPIC_BASE_URL": "https://b.example"}}],
                {"ANTHROPIC_BASE_URL": "https://a.example"},
                "https://b.example",
            ),
            ([{}, {"env": {"ANTHROPIC_BASE_URL": "https://c.example"}}], {}, "https://c.example"),
        ],
    )
    def test_the_provider_is_the_one_that_the_client_would_ask(self, layers: Any, environment: Any, wanted: str):
        assert upstream(layers, environment) == wanted

    @pytest.mark.parametrize("name", ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"])
    def test_another_wire_is_refused(self, name: str):
        with pytest.raises(InputError, match=name):
            upstream([], {name: "1"})
        assert upstream([], {name: "0"}) == claude_code.DEFAULT_UPSTREAM


FAKE = """#!{python}
import json, os, sys, time, signal
if "--version" in sys.argv:
    print("9.9.9 (Claude Code)"); sys.exit(0)
told = {{"argv": sys.argv[1:], "base": os.environ["ANTHROPIC_BASE_URL"], "run": os.environ["CUTLINE_RUN"]}}
told["files"] = {{name: open(os.path.join(told["run"], name)).read() for name in os.listdir(told["run"])}}
told["mode"] = oct(os.stat(told["run"]).st_mode & 0o777)
open(os.environ["TOLD"], "w").write(json.dumps(told))
{then}
"""


@pytest.fixture
def shell(tmp_path: Path):
    """`cutline run claude` with a stand-in for the client, in a home of its own."""
    bin_, home, project = tmp_path / "bin", tmp_path / "home", tmp_path / "project"
    for folder in (bin_, home, project):
        folder.mkdir()

    def go(*arguments: str, then: str = "sys.exit(0)", wait: bool = True, **more: str) -> Any:
        client = bin_ / "claude"
        client.write_text(FAKE.format(python=sys.executable, then=then))
        client.chmod(0o755)
        environment = {
            "PATH": f"{bin_}:{os.environ['PATH']}", "HOME": str(home), "TMPDIR": str(tmp_path),
            "TOLD": str(tmp_path / "told.json"), "ANTHROPIC_BASE_URL": LOOPBACK, **more,
        }  # fmt: skip
        command = [sys.executable, "-P", "-m", "cutline", "run", *arguments]
        started = subprocess.Popen(
            command,
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if not wait:
            return started
        out, err = started.communicate(timeout=60)
        return subprocess.CompletedProcess(command, started.returncode, out, err)

    go.told = lambda: json.loads((tmp_path / "told.json").read_text())  # type: ignore[attr-defined]
    go.home, go.project, go.tmp = home, project, tmp_path  # type: ignore[attr-defined]
    return go


class TestARun:
    def test_returns_the_clients_exit_code_and_leaves_nothing_behind(self, shell: Any):
        done = shell("claude", "-p", "hi", then="print('from the client'); sys.exit(7)")
        assert done.returncode == 7
        assert done.stdout == b"from the client\n"
        told = shell.told()
        assert told["base"].startswith("http://127.0.0.1:") and told["mode"] == "0o700"
        assert not Path(told["run"]).exists()
        assert told["argv"][-2:] == ["-p", "hi"]

    def test_a_signal_that_ended_the_client_is_told_as_shells_do(self, shell: Any):
        assert shell("claude", then="os.kill(os.getpid(), signal.SIGKILL)").returncode == 128 + signal.SIGKILL

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    def test_signals_reach_the_client(self, shell: Any, number: signal.Signals):
        then = (
            f"signal.signal(signal.{number.name}, lambda *_: sys.exit(33))\n"
            "open(os.environ['TOLD'] + '.ready', 'w').close()\n"
            "time.sleep(30)"
        )
        started = shell("claude", then=then, wait=False)
        for _ in range(600):
            if (shell.tmp / "told.json.ready").exists():
                break
            time.sleep(0.05)
        started.send_signal(number)
        started.communicate(timeout=30)
        assert started.returncode == 33

    def test_merges_settings_given_by_path_and_the_users_status_line(self, shell: Any):
        (shell.home / ".claude").mkdir()
        (shell.home / ".claude" / "settings.json").write_text(
            '{"statusLine": {"type": "command", "command": "echo mine"}}'
        )
        (shell.project / "mine.json").write_text('{"model": "opus"}')
        before = sorted(shell.home.rglob("*")), (shell.home / ".claude" / "settings.json").read_bytes()
        shell("--no-record", "claude", "--settings", "mine.json")
        files = shell.told()["files"]
        assert json.loads(files["settings.json"])["model"] == "opus"
        assert json.loads(files["statusline.json"])["command"] == "echo mine"
        after = sorted(shell.home.rglob("*")), (shell.home / ".claude" / "settings.json").read_bytes()
        assert before == after

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("claude", "--settings", "nowhere.json"), "--settings nowhere.json: no such file"),
            (("claude", "--settings", "{broken"), "--settings: no JSON"),
            (("claude", "--append-system-prompt-file", "no.md"), "--append-system-prompt-file no.md: no such file"),
            (("claude", "mcp", "list"), "type: claude mcp list"),
            (("vim",), "not vim; run"),
        ],
    )
    def test_says_in_one_line_what_is_wrong(self, shell: Any, arguments: tuple[str, ...], said: str):
        done = shell(*arguments)
        assert done.returncode == 2 and said in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1 or b"whole histories" in done.stderr

    def test_without_the_client_says_how_to_get_it(self, shell: Any, tmp_path: Path):
        done = shell("claude", PATH=str(tmp_path / "empty"))
        assert done.returncode == 2 and b"npm install -g" in done.stderr

    def test_where_the_record_lies_is_said_once(self, shell: Any):
        assert b"record.db" in shell("claude").stderr

    def test_the_probe_says_whether_the_client_can_show_narration(self, shell: Any):
        shell("claude")
        assert "--thinking-display=summarized" in shell.told()["argv"]


def test_settings_sources_that_are_switched_off_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "settings.json").write_text('{"statusLine": {"command": "x"}}')
    environment = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    found = claude_settings._layers(asked(["--setting-sources", "project"]), tmp_path, environment)
    assert all("statusLine" not in layer for layer in found)
    assert any("statusLine" in layer for layer in claude_settings._layers(asked([]), tmp_path, environment))
