"""What opencode is started with: the user's arguments and layer of configuration, and what a run adds to them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cutline import mandate
from cutline.errors import InputError
from cutline.launch import opencode, opencode_settings, start
from cutline.launch.opencode import LAYER, check, compose, layer
from cutline.launch.start import Start, Wish

ADDRESS = "http://127.0.0.1:4711/t0ken"
PLUGIN = "file:///lib/opencode_plugin.js"


def started(*arguments: str, wish: Wish | None = None, **environment: str) -> Start:
    return compose(
        arguments,
        wish or Wish(record="/data/record.db"),
        address=ADDRESS,
        folder="/run/x",
        python="/usr/bin/python3",
        plugin=PLUGIN,
        environment=environment,
    )


def given(made: Start) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(made.files["opencode.json"])
    return found


class TestTheUsersArguments:
    def test_stay_as_they_were_given(self):
        words = ("run", "--model", "a/b", "--", "--pure")
        check(words, {})
        assert started(*words).arguments == words

    @pytest.mark.parametrize("word", ["models", "auth", "session", "export", "attach", "upgrade"])
    def test_a_subcommand_starts_no_session(self, word: str):
        with pytest.raises(InputError, match=f"type: opencode {word} list"):
            check([word, "list"], {})

    @pytest.mark.parametrize("word", ["run", "serve", "web", "acp", "pr", "some/folder"])
    def test_what_starts_one_is_taken(self, word: str):
        check([word], {})

    @pytest.mark.parametrize("words", [["--attach", "http://x"], ["--attach=http://x"]])
    def test_a_session_that_another_server_runs_is_refused(self, words: list[str]):
        with pytest.raises(InputError, match="past the proxy"):
            check(["run", *words, "hi"], {})

    def test_without_plugins_there_is_no_run(self):
        with pytest.raises(InputError, match="--pure keeps the run's own plugin out"):
            check(["--pure"], {})
        with pytest.raises(InputError, match="OPENCODE_PURE keeps"):
            check([], {"OPENCODE_PURE": "1"})
        check([], {"OPENCODE_PURE": "0"})


class TestTheUsersLayer:
    def test_is_joined_by_the_plugin_and_nothing_else(self):
        own = '{ // mine\n "plugin": ["a"], /* and */ "model": "b // c", "compaction": {"auto": false}, }'
        assert json.loads(layer(own, PLUGIN)) == {
            "plugin": ["a", PLUGIN],
            "model": "b // c",
            "compaction": {"auto": False, "prune": False},
        }

    def test_old_results_are_cleared_only_where_compaction_is_kept(self):
        assert json.loads(layer("", PLUGIN)) == {"plugin": [PLUGIN], "compaction": {"prune": False}}
        assert json.loads(layer("", PLUGIN, clears=True)) == {"plugin": [PLUGIN]}
        kept = started(wish=Wish(keep_compaction=True))
        assert json.loads(kept.environment[LAYER]) == {"plugin": [PLUGIN]} and given(kept)["compaction"] is False

    @pytest.mark.parametrize("wrong", ["{", "[]", '{"plugin": "a"}', '"x"', "[" * 9_999])
    def test_what_can_t_be_read_is_said_in_one_line(self, wrong: str):
        with pytest.raises(InputError, match=f"^{LAYER}: ") as told:
            layer(wrong, PLUGIN)
        assert "\n" not in str(told.value)


class TestWhatARunAdds:
    def test_the_plugin_is_told_what_is_wanted(self):
        made = started(wish=Wish(mandate="strict", record="/data/record.db"))
        told = given(made)
        assert told["address"] == ADDRESS and told["held"] == "strict" and told["compaction"] is True
        assert told["server"]["command"] == ["/usr/bin/python3", "-P", "-m", "cutline", "mcp"]
        assert told["server"]["environment"] == {"CUTLINE_RUN": "/run/x", "CUTLINE_RECORD": "/data/record.db"}
        assert told["tools"] == ["cutline_micro_handoff", "cutline_recall", "cutline_say"]
        assert told["mandate"] == "/run/x/MANDATE.md" and made.files["MANDATE.md"].strip() == mandate.MANDATE

    def test_the_environment(self):
        set_ = started(NO_PROXY="intern.example", OPENCODE_EXPERIMENTAL="1").environment
        assert set_["NO_PROXY"] == "intern.example,127.0.0.1,localhost"
        assert set_["CUTLINE_RUN"] == "/run/x"
        # The checkpoint is a call of its own, and no history goes over a web socket.
        assert set_["OPENCODE_EXPERIMENTAL_CODE_MODE"] == set_["OPENCODE_EXPERIMENTAL_WEBSOCKETS"] == "false"

    def test_the_users_patience_with_npm_stays_theirs(self):
        made = started(npm_config_fetch_retries="5")
        assert "npm_config_fetch_retries" not in made.environment
        assert given(made)["unset"] == ["npm_config_fetch_timeout"], "what is taken back is what was set"

    def test_the_plugin_is_there_and_knows_what_it_is_told(self):
        path = Path(opencode_settings.__file__).with_name("opencode_plugin.js")
        used = set(re.findall(r"\bgiven\.(\w+)", path.read_text()))
        assert used == set(given(started()))


class TestPrepare:
    def prepare(self, home: Path, *arguments: str, **more: str) -> start.Prepared:
        environment = {"HOME": str(home), **more}
        return opencode_settings.prepare(arguments, Wish(), binary="opencode", here=home, environment=environment)

    def test_it_names_each_requests_provider_and_its_own_address(self, tmp_path: Path):
        prepared = self.prepare(tmp_path, "run", "hi")
        assert prepared.upstream is None and prepared.login == ""
        made = prepared.compose(ADDRESS, "/run/x")
        (plugin,) = json.loads(made.environment[LAYER])["plugin"]
        assert plugin.startswith("file:///") and plugin.endswith("/launch/opencode_plugin.js")

    def test_logins_are_named_and_no_key_is(self, tmp_path: Path):
        data = tmp_path / ".local" / "share" / "opencode"
        data.mkdir(parents=True)
        held = {"anthropic": {"type": "oauth", "access": "k1"}, "mine": {"type": "api", "key": "k2"}, "odd": 1}
        (data / "auth.json").write_text(json.dumps(held))
        login = self.prepare(tmp_path, OPENAI_API_KEY="k3").login
        assert login == "anthropic (a login), mine (an API key), openai (OPENAI_API_KEY)"
        assert self.prepare(tmp_path, XDG_DATA_HOME=str(tmp_path)).login == ""

    def test_a_provider_in_the_users_configuration_counts(self, tmp_path: Path):
        config = tmp_path / ".config" / "opencode"
        config.mkdir(parents=True)
        (config / "opencode.jsonc").write_text(
            '{"provider": {"own": {"options": {"apiKey": "k"}}, "none": {}}, } // mine'
        )
        assert self.prepare(tmp_path).login == "own (opencode.jsonc)"

    def test_a_wrong_layer_is_said_before_anything_starts(self, tmp_path: Path):
        with pytest.raises(InputError, match=LAYER):
            self.prepare(tmp_path, **{LAYER: "{"})


def test_it_is_known_by_its_name():
    found = start.client("opencode")
    assert (found.sessions, found.package) == ("opencode", "opencode-ai") and found.launch is not None
    assert tuple(f"cutline_{tool['name']}" for tool in mandate.TOOLS) == opencode.TOOLS
