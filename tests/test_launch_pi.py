"""What pi is started with: the user's arguments and settings, what a run adds, and what the proxy knows of its wire."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cutline import mandate
from cutline.errors import InputError
from cutline.launch import pi, pi_settings
from cutline.launch.pi import TOOLS, asked, check, compose
from cutline.launch.start import Start, Wish
from cutline.proxy import client, hooks, plan
from cutline.proxy.hooks import Fullness
from cutline.proxy.observer import Observer, Place

ADDRESS = "http://127.0.0.1:4711/t0ken"
OURS = ",".join(TOOLS)


def start(*arguments: str, wish: Wish | None = None, environment: dict[str, str] | None = None) -> Start:
    return compose(
        asked(arguments),
        wish or Wish(record="/data/record.db"),
        address=ADDRESS,
        folder="/run/x",
        python="/usr/bin/python3",
        extension="/lib/pi_extension.js",
        environment=environment or {},
    )


def given(made: Start) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(made.files["pi.json"])
    return found


class TestTheUsersArguments:
    def test_stand_behind_ours_as_they_were_given(self):
        words = ("-c", "--model", "sonnet:high", "-e", "mine.ts", "-p", "say hi", "--", "-t", "x")
        assert start(*words).arguments == ("--extension", "/lib/pi_extension.js", *words)

    @pytest.mark.parametrize(
        ("words", "tools"),
        [
            (("--tools", "read,bash"), f"read,bash,{OURS}"),
            (("-t", "read", "--tools", " bash , ls "), f"bash,ls,{OURS}"),
            (("--tools", "+codemode,-write"), "+codemode,-write"),
            (("--no-tools",), OURS),
            (("-nt", "-t", "+read"), "+read," + ",".join(f"+{tool}" for tool in TOOLS)),
        ],
    )
    def test_a_list_of_tools_has_ours_in_it_where_it_would_leave_them_out(self, words: tuple[str, ...], tools: str):
        made = start(*words, "hi")
        assert made.arguments[2:4] == ("--tools", tools) and made.arguments[-1] == "hi"
        assert sum(word in ("--tools", "-t") for word in made.arguments) == 1

    @pytest.mark.parametrize(
        "words", [(), ("-nbt",), ("-n", "--tools"), ("--", "-t", "x"), ("-p", "--", "--tools", "x")]
    )
    def test_without_a_list_none_is_made(self, words: tuple[str, ...]):
        assert start(*words).arguments == ("--extension", "/lib/pi_extension.js", *words)

    @pytest.mark.parametrize("left", ["cutline_say", "*", "read, cutline_*"])
    def test_our_tools_can_t_be_left_out(self, left: str):
        with pytest.raises(InputError, match="--exclude-tools would leave out cutline_"):
            asked(["-xt", left])

    @pytest.mark.parametrize("word", ["install", "mcp", "auth", "config", "update"])
    def test_a_subcommand_starts_no_session(self, word: str):
        with pytest.raises(InputError, match=f"type: pi {word} x"):
            asked([word, "x"])
        assert asked(["-p", word]).rest == ("-p", word)


class TestWhatARunAdds:
    def test_the_extension_is_told_what_is_wanted_in_the_runs_folder(self):
        told = given(start())
        assert told["address"] == ADDRESS and told["mandate"] == mandate.MANDATE
        assert told["server"] == ["/usr/bin/python3", "-P", "-m", "cutline", "mcp"]
        assert [tool["name"] for tool in told["tools"]] == ["micro_handoff", "recall", "say"]
        assert (told["held"], told["compaction"]) == ("text", True)
        told = given(start(wish=Wish("strict", keep_compaction=True)))
        assert (told["held"], told["compaction"]) == ("strict", False)

    def test_by_environment_only_where_that_is(self):
        set_ = start(environment={"NO_PROXY": "intern.example"}).environment
        assert set_["CUTLINE_RUN"] == "/run/x" and set_["CUTLINE_RECORD"] == "/data/record.db"
        assert set_["NO_PROXY"] == "intern.example,127.0.0.1,localhost"
        assert ADDRESS not in set_.values()

    def test_the_extension_is_a_file_of_the_package(self):
        source = Path(pi_settings.__file__).with_name("pi_extension.js").read_text()
        read = set(re.findall(r"\bgiven\.(\w+)", source))
        assert read == set(given(start())), "what it reads is what it is given"

    @pytest.mark.parametrize(
        ("path", "carried"),
        [
            ("/v1/chat/completions", True),
            ("/v1/messages", True),
            ("/backend-api/codex/responses", True),
            ("/v1beta/models/gemini-3:streamGenerateContent", True),
            ("/v1/models", False),
            ("/oauth/token", False),
        ],
    )
    def test_what_carries_a_history_is_known_by_its_path(self, path: str, carried: bool):
        assert bool(re.search(f"(?:{given(start())['carried']})/?$", path)) is carried


class TestTheProvider:
    @pytest.mark.parametrize(
        ("words", "default"),
        [
            (["--model", "amazon-bedrock/claude"], ""),
            (["--provider", "amazon-bedrock", "--model", "claude"], ""),
            ([], "amazon-bedrock"),
        ],
    )
    def test_whose_wire_goes_past_the_proxy_is_refused(self, words: list[str], default: str):
        with pytest.raises(InputError, match="amazon-bedrock: its requests are signed"):
            check(asked(words), default)

    @pytest.mark.parametrize("words", [["--model", "anthropic/x"], ["--session", "1"], ["-c"]])
    def test_another_choice_stands_before_the_settings(self, words: list[str]):
        check(asked(words), "amazon-bedrock")

    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        (tmp_path / ".pi" / "agent").mkdir(parents=True)
        return tmp_path

    def prepared(self, home: Path, **environment: str) -> Any:
        wanted = {"HOME": str(home), **environment}
        return pi_settings.prepare([], Wish(), binary="pi", here=home, environment=wanted)

    def test_is_read_from_the_settings(self, home: Path):
        (home / ".pi" / "agent" / "settings.json").write_text('\ufeff{"defaultProvider": "amazon-bedrock"}', "utf-8")
        with pytest.raises(InputError, match="amazon-bedrock"):
            self.prepared(home)
        assert self.prepared(home, PI_CODING_AGENT_DIR="~/elsewhere").upstream is None

    def test_settings_that_can_t_be_read_are_the_clients_to_tell(self, home: Path):
        for name in ("settings.json", "auth.json", "models.json"):
            (home / ".pi" / "agent" / name).write_text("{")
        assert self.prepared(home).login == ""

    def test_logins_are_named_and_no_key_is(self, home: Path):
        agent = home / ".pi" / "agent"
        held = {"anthropic": {"type": "oauth", "access": "s3cret"}, "groq": {"type": "api_key", "key": "s3cret"}}
        (agent / "auth.json").write_text(json.dumps(held))
        (agent / "models.json").write_text(json.dumps({"providers": {"mine": {"apiKey": "s3cret"}, "open": {}}}))
        login = self.prepared(home, OPENAI_API_KEY="s3cret").login
        assert login == "anthropic (a subscription), groq (an API key), openai (OPENAI_API_KEY), mine (models.json)"


class TestItsWire:
    def test_the_session_is_named_by_headers_that_go_no_further(self):
        headers = {"x-cutline-session": "s", "x-cutline-agent": "a", "x-session-id": "other"}
        assert client.ids(headers) == ("s", "a")
        assert client.ids({"x-cutline-session": "s"}) == ("s", "")
        sent = plan.request_headers([("X-Cutline-Session", "s"), ("X-Cutline-Agent", "a"), ("X-Session-Id", "other")])
        assert sent == [("X-Session-Id", "other")]

    @pytest.mark.parametrize(
        ("begin", "ask", "summary"),
        [
            ("<conversation>\n", "</conversation>\n\nThe messages above are a conversation to summarize.", True),
            (
                "# Conversation\n",
                "# Instructions\nThe messages above are earlier context from an ongoing conversation.",
                True,
            ),
            ("Read:\n# Conversation\n", "The messages above are earlier context from an ongoing conversation.", False),
            ("# Conversation\n", "What stands above?", False),
        ],
    )
    def test_its_demands_for_a_summary_are_known(self, begin: str, ask: str, summary: bool):
        text = {"type": "text", "text": f"{begin}[User]: Count.\n\n{ask}"}
        body = {"model": "m", "messages": [{"role": "user", "content": [text]}]}
        assert client.is_compaction(json.dumps(body).encode()) is summary

    def test_its_summary_is_held_back_while_there_is_room(self):
        assert hooks.before_compaction({"trigger": "auto", "room": 4_000}, Fullness()).get("decision") == "block"
        assert hooks.before_compaction({"trigger": "auto", "room": 3_999}, Fullness()) == {}
        assert hooks.before_compaction({"trigger": "manual", "room": 9_000}, Fullness()) == {}

    def test_what_goes_past_the_proxy_is_noted_once(self):
        observer = Observer(Place("pi", "/p", None), None)
        for _ in range(2):
            assert observer.hook("uncut", {"why": "x (y) goes past the proxy:\n it is not cut"}) == {}
        observer.close()
        assert observer.notes == ["x (y) goes past the proxy: it is not cut"]


def test_the_client_is_registered():
    from cutline.launch import start as launch

    one = launch.client("pi")
    assert one.launch is pi_settings and (one.sessions, one.again) == ("pi", "--session")
    assert pi.GIVEN == "pi.json"
