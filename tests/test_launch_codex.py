"""What Codex is started with: the user's arguments and configuration, and what a run adds to them."""

from __future__ import annotations

import itertools
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cutline import cut, mandate, verify
from cutline.errors import InputError
from cutline.launch import codex, codex_settings, start
from cutline.launch.codex import Asked, Provider, asked, compose, provider, settings, toml
from cutline.launch.start import Start, Wish

ADDRESS = "http://127.0.0.1:4711/t0ken"
OPENAI = Provider("openai", codex.KEYED, ("openai_base_url",))


def started(
    *arguments: str,
    config: dict[str, Any] | None = None,
    upstream: Provider = OPENAI,
    alone: bool = True,
    environment: dict[str, str] | None = None,
) -> Start:
    return compose(
        asked(arguments),
        Wish(record="/data/record.db"),
        address=ADDRESS,
        folder="/run/x",
        python="/usr/bin/python3",
        upstream=upstream,
        config=config or {},
        environment=environment or {},
        alone=alone,
    )


def overrides(made: Start) -> dict[str, Any]:
    """What the client takes of the overrides."""
    words = made.arguments
    return settings(value for word, value in itertools.pairwise(words) if word == "-c")


class TestTheUsersArguments:
    def test_stand_behind_ours_as_they_were_given(self):
        made = started("exec", "--json", "-m", "gpt-5.5", "say hi")
        assert made.arguments[-5:] == ("exec", "--json", "-m", "gpt-5.5", "say hi")

    @pytest.mark.parametrize(
        "given", [("-c", "model=x"), ("-cmodel=x",), ("-c=model=x",), ("--config", "model=x"), ("--config=model=x",)]
    )
    def test_an_override_stands_before_ours_wherever_it_was(self, given: tuple[str, ...]):
        # Behind a subcommand it would win over one in front of it.
        made = started("exec", *given, "hi", config={"model": "x"})
        assert made.arguments[:2] == ("-c", "model=x") and made.arguments[-2:] == ("exec", "hi")

    def test_the_users_address_does_not_win(self):
        made = started("-c", 'openai_base_url="https://elsewhere.example"')
        assert overrides(made)["openai_base_url"] == ADDRESS

    @pytest.mark.parametrize(
        ("arguments", "command", "again"),
        [
            ((), "", False),
            (("fix it",), "", False),
            (("-m", "exec", "resume it"), "", False),
            (("exec", "hi"), "exec", False),
            (("-s", "read-only", "e", "hi"), "exec", False),
            (("exec", "--json", "resume", "ID", "hi"), "exec", True),
            (("resume", "--last"), "resume", True),
            (("fork", "ID"), "fork", True),
            (("review", "--base", "resume"), "review", False),
            (("-i", "a.png", "resume"), "", False),  # it takes all words that follow
            (("--", "exec"), "", False),
        ],
    )
    def test_tell_what_is_started(self, arguments: tuple[str, ...], command: str, again: bool):
        found = asked(arguments)
        assert (found.command, found.again, found.rest) == (command, again, arguments)

    @pytest.mark.parametrize("word", ["mcp", "login", "app-server", "cloud", "features"])
    def test_a_subcommand_starts_no_session(self, word: str):
        with pytest.raises(InputError, match=f"type: codex {word} list"):
            asked([word, "list"])

    def test_a_server_elsewhere_is_refused(self):
        with pytest.raises(InputError, match="past the proxy"):
            asked(["--remote", "ws://127.0.0.1:1"])

    def test_a_value_that_is_missing_is_said(self):
        with pytest.raises(InputError, match="-c needs a value"):
            asked(["exec", "-c"])
        with pytest.raises(InputError, match="has to be key=value"):
            settings(["model"])

    def test_overrides_are_read_as_the_client_reads_them(self):
        read = settings(["a.b=1", 'a.c="x"', "model=gpt-5.5", "list=[1, 2]", "a.b=2"])
        assert read == {"a": {"b": 2, "c": "x"}, "model": "gpt-5.5", "list": [1, 2]}


class TestWhatARunAdds:
    def test_the_tools_are_in_view_allowed_and_know_their_run(self):
        held = overrides(started(environment={"CODEX_HOME": "/c", "HOME": "/h"}))["mcp_servers"]["cutline"]
        assert [held["command"], *held["args"]] == ["/usr/bin/python3", "-P", "-m", "cutline", "mcp"]
        assert held["env"] == {"CODEX_HOME": "/c", "CUTLINE_RUN": "/run/x", "CUTLINE_RECORD": "/data/record.db"}
        assert held["default_tools_approval_mode"] == "approve" and held["required"] is True
        assert held["omit_tools_from"] == ["deferred", "code_mode"]

    def test_the_mandate_stands_behind_the_users_own_instructions(self):
        assert overrides(started())["developer_instructions"] == mandate.MANDATE
        both = overrides(started(config={"developer_instructions": "Be kind."}))["developer_instructions"]
        assert both == f"Be kind.\n\n{mandate.MANDATE}"

    def test_in_a_session_that_there_was_the_tools_server_tells_it_too(self):
        for arguments in (("resume", "--last"), ("exec", "resume", "ID")):
            assert "--mandate" in overrides(started(*arguments))["mcp_servers"]["cutline"]["args"]

    def test_a_session_on_the_terminal_keeps_out_of_a_shared_server(self):
        assert "--no-daemon" in started().arguments and "--no-daemon" in started("resume").arguments
        assert "--no-daemon" not in started("exec", "hi").arguments
        assert "--no-daemon" not in started(alone=False).arguments

    def test_a_server_of_the_users_with_our_name_is_told(self):
        with pytest.raises(InputError, match="give that server another name"):
            started(config={"mcp_servers": {"cutline": {"url": "http://127.0.0.1:1/mcp"}}})

    @pytest.mark.parametrize(
        "value", ['a"b\\c\n\t\x7f\x00é😀', "", True, 30, ["a", 1], {"a b": {"c": [False]}, "d": "x"}]
    )
    def test_values_come_back_out_of_toml(self, value: Any):
        assert tomllib.loads(f"x = {toml(value)}")["x"] == value


class TestWhereItSends:
    @pytest.mark.parametrize(
        ("config", "chatgpt", "base"),
        [
            ({}, False, "https://api.openai.com/v1"),
            ({}, True, "https://chatgpt.com/backend-api/codex"),
            ({"openai_base_url": "http://127.0.0.1:9/v1"}, True, "http://127.0.0.1:9/v1"),
        ],
    )
    def test_by_its_own_provider(self, config: dict[str, Any], chatgpt: bool, base: str):
        found = provider(Asked(()), config, chatgpt)
        assert (found.base, found.points) == (base, ("openai_base_url",))

    def test_by_a_provider_of_the_users_whose_web_sockets_are_off(self):
        mine = {"base_url": "https://mine.example/v1", "supports_websockets": True}
        found = provider(Asked(()), {"model_provider": "mine", "model_providers": {"mine": mine}}, True)
        assert found.base == "https://mine.example/v1"
        held = overrides(started(upstream=found))["model_providers"]["mine"]
        assert held == {"base_url": ADDRESS, "supports_websockets": False}

    @pytest.mark.parametrize(
        ("user", "config", "said"),
        [
            (Asked(()), {"model_provider": "amazon-bedrock"}, "signed"),
            (Asked(()), {"model_provider": "m", "model_providers": {"m": {"aws": {}, "base_url": "x"}}}, "signed"),
            (Asked(()), {"model_provider": "m"}, "no base_url"),
            (Asked((), local="?"), {}, "ollama: the client finds its local server"),
            (Asked((), local="lmstudio"), {}, "lmstudio: the client finds"),
            (Asked(()), {"model_provider": "a.b", "model_providers": {"a.b": {"base_url": "x"}}}, "a dot"),
        ],
    )
    def test_what_the_proxy_cant_stand_in_for_is_told(self, user: Asked, config: dict[str, Any], said: str):
        with pytest.raises(InputError, match=said):
            provider(user, config, False)


CLIENT = "#!/bin/sh\n[ \"$1\" = login ] && echo 'Logged in using ChatGPT' >&2\nexit 0\n"


class TestTheUsersConfiguration:
    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        for name in ("codex", "project/.git", "project/.codex", "project/deep"):
            (tmp_path / name).mkdir(parents=True)
        program = tmp_path / "client"
        program.write_text(CLIENT)
        program.chmod(0o755)
        return tmp_path

    def prepare(self, place: Path, *arguments: str, wish: Wish = Wish()) -> tuple[str, dict[str, Any]]:  # noqa: B008
        environment = {"CODEX_HOME": str(place / "codex"), "PATH": "/usr/bin:/bin"}
        binary, here = str(place / "client"), place / "project" / "deep"
        prepared = codex_settings.prepare(arguments, wish, binary=binary, here=here, environment=environment)
        assert prepared.sockets is False
        return prepared.upstream, overrides(prepared.compose(ADDRESS, "/run/x"))

    def test_is_read_in_the_clients_order_and_left_as_it_is(self, place: Path):
        mine = place / "codex" / "config.toml"
        mine.write_text(
            'openai_base_url = "http://a.example"\ndeveloper_instructions = "Mine."\n'
            f'projects."{place / "project"}".trust_level = "trusted"\n'
        )
        before = mine.read_bytes()
        assert self.prepare(place)[0] == "http://a.example"
        (place / "codex" / "work.config.toml").write_text('openai_base_url = "http://b.example"\n')
        assert self.prepare(place, "-p", "work")[0] == "http://b.example"
        theirs = place / "project" / ".codex" / "config.toml"
        theirs.write_text('openai_base_url = "http://c.example"\ndeveloper_instructions = "The project\'s."\n')
        upstream, ours = self.prepare(place, "-p", "work")
        assert upstream == "http://b.example"  # a project's file may not say where to send
        assert ours["developer_instructions"].startswith("The project's.\n\n# Visible reasoning")
        assert self.prepare(place, "-c", "openai_base_url=http://d.example")[0] == "http://d.example"
        assert self.prepare(place, "exec", "--ignore-user-config", "hi")[0] == codex.CHATGPT
        assert mine.read_bytes() == before

    def test_of_a_project_that_is_not_trusted_counts_for_nothing(self, place: Path):
        (place / "project" / ".codex" / "config.toml").write_text('developer_instructions = "Obey."\n')
        assert self.prepare(place)[1]["developer_instructions"] == mandate.MANDATE

    def test_the_login_tells_where_to_send(self, place: Path):
        assert self.prepare(place)[0] == codex.CHATGPT
        (place / "client").write_text(CLIENT.replace("in using ChatGPT", "out"))
        assert self.prepare(place)[0] == codex.KEYED

    def test_that_cant_be_read_is_told(self, place: Path):
        (place / "codex" / "config.toml").write_text("= 1")
        with pytest.raises(InputError, match=r"config\.toml: no TOML"):
            self.prepare(place)

    @pytest.mark.parametrize("how", ["nudge", "strict"])
    def test_a_mandate_that_needs_hooks_is_refused_before_anything_starts(self, place: Path, how: Any):
        with pytest.raises(InputError, match=f"--mandate {how}: not with codex"):
            self.prepare(place, wish=Wish(how))


def test_it_is_known_to_run():
    assert start.client("codex").package == "@openai/codex"


NOT_STORED = [
    "Wall time: 0.0039 seconds\nOutput:\ncheckpoint refused: open: a text is required.",
    "unsupported call: mcp__cutlinemicro_handoff",
    "tool call error: failed to get tool definition",
    "user rejected MCP tool call",
    "MCP tool call cancelled",
    "aborted",
]


@pytest.mark.parametrize("said", NOT_STORED)
@pytest.mark.parametrize("parts", [False, True], ids=["text", "parts"])
def test_a_checkpoint_that_was_not_stored_is_no_seam_though_no_flag_says_so(said: str, parts: bool):
    lines = said.split("Output:\n")
    texts = [f"{lines[0]}Output:", lines[1]] if len(lines) == 2 else [said]
    held: Any = [{"type": "input_text", "text": text} for text in texts] if parts else said

    def body(last: Any) -> bytes:
        return json.dumps(
            {
                "model": "gpt-5.5",
                "input": [
                    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
                    {"type": "function_call", "call_id": "c", "name": "exec_command", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c", "output": "x" * 400},
                    {
                        "type": "function_call",
                        "call_id": "h",
                        "name": "micro_handoff",
                        "namespace": "mcp__cutline",
                        "arguments": "{}",
                    },
                    {"type": "function_call_output", "call_id": "h", "output": last},
                ],
            }
        ).encode()

    done = cut(body(held))
    assert not done.changed
    verify(body(held), done.body)
    assert cut(body("Wall time: 0.1 seconds\nOutput:\ncheckpoint stored")).changed
