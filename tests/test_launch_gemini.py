"""What Gemini CLI is started with: the user's arguments and settings, what a run adds, and the home made of links."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cutline import mandate
from cutline.errors import InputError
from cutline.launch import gemini, gemini_home, gemini_settings
from cutline.launch.gemini import FOLDER, Provider, asked, check, compose, provider
from cutline.launch.start import Start, Wish

ADDRESS = "http://127.0.0.1:4711/t0ken"
KEYED = Provider(gemini.KEYED, "GOOGLE_GEMINI_BASE_URL")


def start(
    *arguments: str,
    settings: dict[str, Any] | None = None,
    upstream: Provider = KEYED,
    policies: tuple[str, ...] = ("/h/.gemini/policies",),
    environment: dict[str, str] | None = None,
    wish: Wish = Wish(record="/data/record.db"),  # noqa: B008
) -> Start:
    return compose(
        asked(arguments),
        wish,
        address=ADDRESS,
        folder="/run/x",
        python="/usr/bin/python3",
        upstream=upstream,
        settings=settings or {},
        environment=environment or {},
        home="/h",
        policies=policies,
        trusted="/h/.gemini/trustedFolders.json",
    )


class TestTheUsersArguments:
    def test_stand_behind_ours_as_they_were_given(self):
        made = start("-y", "-m", "pro", "-p", "say hi")
        assert made.arguments[-5:] == ("-y", "-m", "pro", "-p", "say hi")
        assert all(word.startswith("--policy=") for word in made.arguments[:-5])

    def test_the_users_policies_stay_beside_ours(self):
        assert start().arguments == ("--policy=/h/.gemini/policies", "--policy=/run/x/cutline.toml")
        # By flag the client takes them in place of its folder's.
        assert start("--policy", "a.toml").arguments == ("--policy=/run/x/cutline.toml", "--policy", "a.toml")

    @pytest.mark.parametrize("given", [("-e", "a,b"), ("--extensions=a", "-e", "b")])
    def test_chosen_extensions_are_joined_by_ours(self, given: tuple[str, ...]):
        words = [word for word in start(*given).arguments if "extensions" in word]
        assert words == ["--extensions=a", "--extensions=b", "--extensions=cutline"]

    def test_no_extensions_means_none_of_the_users(self):
        assert [word for word in start("-e", "none").arguments if "extensions" in word] == ["--extensions=cutline"]

    def test_allowed_servers_are_joined_by_ours(self):
        words = start("--allowed-mcp-server-names", "git").arguments
        assert words[-3:] == ("--allowed-mcp-server-names=cutline", "--allowed-mcp-server-names", "git")
        settings = {"mcp": {"allowed": ["git", "web"], "excluded": ["web"]}}
        words = tuple(word for word in start(settings=settings).arguments if "allowed" in word)
        assert words == ("--allowed-mcp-server-names=git", "--allowed-mcp-server-names=cutline")

    def test_a_prompt_that_looks_like_an_option_is_a_prompt(self):
        assert asked(["-p", "--sandbox"]).sandbox is None
        assert asked(["--", "-e", "x"]).extensions is None

    @pytest.mark.parametrize("word", ["mcp", "extensions", "skills", "hooks"])
    def test_a_subcommand_starts_no_session(self, word: str):
        with pytest.raises(InputError, match=f"type: gemini {word} list"):
            asked([word, "list"])

    def test_a_value_that_is_missing_is_said(self):
        with pytest.raises(InputError, match="--policy needs a value"):
            asked(["--policy"])


class TestWhatARunAdds:
    def test_an_extension_with_the_tools_and_the_mandate(self):
        files = start().files
        made = json.loads(files[f"{FOLDER}/gemini-extension.json"])
        assert made["name"] == "cutline" and made["contextFileName"] == "MANDATE.md"
        server = made["mcpServers"]["cutline"]
        assert [server["command"], *server["args"]] == ["/usr/bin/python3", "-P", "-m", "cutline", "mcp"]
        assert server["env"] == {
            "CUTLINE_RUN": "/run/x",
            "CUTLINE_RECORD": "/data/record.db",
            "GEMINI_CLI_HOME": "/h",
        }
        assert files[f"{FOLDER}/MANDATE.md"].strip() == mandate.MANDATE

    def test_the_three_tools_are_allowed_and_nothing_else(self):
        (rule,) = tomllib.loads(start().files["cutline.toml"])["rule"]
        assert rule["mcpName"] == "cutline" and rule["decision"] == "allow"
        assert rule["toolName"] == ["micro_handoff", "recall", "say"]

    def test_a_hook_tells_the_proxy_the_sessions_name(self):
        made = json.loads(start().files[f"{FOLDER}/hooks/hooks.json"])
        ((entry,),) = made["hooks"].values()
        assert list(made["hooks"]) == ["SessionStart"]
        assert entry["hooks"][0]["command"].endswith("-m cutline hook ask --for session")
        assert start().files["address"] == ADDRESS

    @pytest.mark.parametrize(("held", "event"), [("strict", "BeforeTool"), ("nudge", "AfterTool")])
    def test_a_mandate_that_is_held_asks_the_proxy_about_each_call(self, held: Any, event: str):
        made = json.loads(start(wish=Wish(held)).files[f"{FOLDER}/hooks/hooks.json"])["hooks"]
        assert list(made) == ["SessionStart", event]
        assert made[event][0]["hooks"][0]["command"].endswith("-m cutline hook ask --for before-call")

    def test_the_address_by_the_variable_of_the_login(self):
        set_ = start(environment={"NO_PROXY": "intern.example"}).environment
        assert set_["GOOGLE_GEMINI_BASE_URL"] == ADDRESS
        assert set_["NO_PROXY"] == "intern.example,127.0.0.1,localhost"
        assert set_["GEMINI_CLI_HOME"] == "/run/x/home"
        assert set_["GEMINI_CLI_TRUSTED_FOLDERS_PATH"] == "/h/.gemini/trustedFolders.json"
        assert start(upstream=Provider("x", "CODE_ASSIST_ENDPOINT")).environment["CODE_ASSIST_ENDPOINT"] == ADDRESS


def selected(way: str) -> dict[str, Any]:
    return {"security": {"auth": {"selectedType": way}}}


class TestWhereItWouldSend:
    @pytest.mark.parametrize(
        ("settings", "environment", "expected"),
        [
            (selected("gemini-api-key"), {}, KEYED),
            ({}, {"GEMINI_API_KEY": "k"}, KEYED),
            ({}, {"GOOGLE_GEMINI_BASE_URL": "http://g"}, Provider("http://g", "GOOGLE_GEMINI_BASE_URL")),
            (selected("oauth-personal"), {}, Provider(gemini.CODE_ASSIST, "CODE_ASSIST_ENDPOINT")),
            # A base URL of the API by key is none of the login's with Google.
            (
                selected("oauth-personal"),
                {"GOOGLE_GEMINI_BASE_URL": "http://g"},
                Provider(gemini.CODE_ASSIST, "CODE_ASSIST_ENDPOINT"),
            ),
            ({}, {"GOOGLE_GENAI_USE_GCA": "true"}, Provider(gemini.CODE_ASSIST, "CODE_ASSIST_ENDPOINT")),
            (selected("vertex-ai"), {"GOOGLE_API_KEY": "k"}, Provider(gemini.VERTEX, "GOOGLE_VERTEX_BASE_URL")),
            (
                selected("vertex-ai"),
                {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "europe-west4"},
                Provider("https://europe-west4-aiplatform.googleapis.com", "GOOGLE_VERTEX_BASE_URL"),
            ),
            (
                selected("vertex-ai"),
                {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "eu"},
                Provider("https://aiplatform.eu.rep.googleapis.com", "GOOGLE_VERTEX_BASE_URL"),
            ),
        ],
    )
    def test_by_its_login(self, settings: dict[str, Any], environment: dict[str, str], expected: Provider):
        assert provider(settings, environment) == expected

    def test_without_a_login_it_is_said(self):
        with pytest.raises(InputError, match="not logged in: start it once"):
            provider({}, {})

    def test_a_way_that_is_not_known_is_said(self):
        with pytest.raises(InputError, match="logs in by magic"):
            provider(selected("magic"), {})


@pytest.mark.parametrize(
    ("arguments", "settings", "environment", "said"),
    [
        (["-s"], {}, {}, "sandbox"),
        ([], {"tools": {"sandbox": "docker"}}, {}, "sandbox"),
        ([], {}, {"GEMINI_SANDBOX": "podman"}, "sandbox"),
        ([], {"mcpServers": {"cutline": {}}}, {}, "mcpServers.cutline"),
        ([], {"security": {"allowedExtensions": ["x"]}}, {}, "allowedExtensions"),
        ([], {"admin": {"mcp": {"enabled": False}}}, {}, "admin.mcp.enabled"),
        ([], {"hooksConfig": {"enabled": False}}, {}, "--mandate strict is held by hooks"),
    ],
)
def test_what_could_not_be_carried_is_said_before_anything_starts(
    arguments: list[str], settings: dict[str, Any], environment: dict[str, str], said: str
):
    with pytest.raises(InputError, match=said):
        check(asked(arguments), Wish("strict"), settings, environment)


def test_without_the_sandbox_there_is_nothing_to_say():
    check(asked(["--sandbox=false"]), Wish(), {"tools": {"sandbox": True}}, {})
    check(asked(["-s"]), Wish(), {"hooksConfig": {"enabled": False}}, {"GEMINI_SANDBOX": "false"})


class TestTheSettings:
    """As the client reads them, out of files."""

    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        (tmp_path / "home" / ".gemini").mkdir(parents=True)
        (tmp_path / "work" / ".gemini").mkdir(parents=True)
        return tmp_path / "home"

    def upstream(self, home: Path, **environment: str) -> str:
        wanted = {"GEMINI_CLI_HOME": str(home), "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(home / "none.json")}
        here = home.parent / "work"
        made = gemini_settings.prepare([], Wish(), binary="gemini", here=here, environment={**wanted, **environment})
        return made.upstream

    def test_may_hold_comments_and_trailing_commas(self, home: Path):
        text = '{"security": {"auth": /* mine */ {"selectedType": "oauth-personal",}}, // "x": "//"\n}'
        (home / ".gemini" / "settings.json").write_text(text)
        assert self.upstream(home) == gemini.CODE_ASSIST

    def test_of_a_project_count_where_it_is_trusted(self, home: Path):
        (home / ".gemini" / "settings.json").write_text(json.dumps(selected("oauth-personal")))
        (home.parent / "work" / ".gemini" / "settings.json").write_text(json.dumps(selected("gemini-api-key")))
        assert self.upstream(home) == gemini.CODE_ASSIST
        trusted = home / ".gemini" / "trustedFolders.json"
        trusted.write_text(json.dumps({str(home.parent): "TRUST_FOLDER"}))
        assert self.upstream(home) == gemini.KEYED
        trusted.write_text(json.dumps({str(home.parent): "TRUST_FOLDER", str(home.parent / "work"): "DO_NOT_TRUST"}))
        assert self.upstream(home) == gemini.CODE_ASSIST
        assert self.upstream(home, GEMINI_CLI_TRUST_WORKSPACE="true") == gemini.KEYED

    def test_a_folder_that_is_not_trusted_sends_nothing_elsewhere(self, home: Path):
        env = home.parent / "work" / ".env"
        env.write_text("GEMINI_API_KEY=k\nexport GOOGLE_GEMINI_BASE_URL='http://elsewhere.example'  # no\n")
        assert self.upstream(home) == gemini.KEYED
        assert self.upstream(home, GEMINI_CLI_TRUST_WORKSPACE="true") == "http://elsewhere.example"
        # The environment's own goes before the file's.
        known = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GOOGLE_GEMINI_BASE_URL": "http://mine.example"}
        assert self.upstream(home, **known) == "http://mine.example"

    def test_that_can_t_be_read_are_said(self, home: Path):
        (home / ".gemini" / "settings.json").write_text("{")
        with pytest.raises(InputError, match=r"settings\.json: no JSON"):
            self.upstream(home)

    def test_the_home_itself_is_no_project(self, home: Path):
        with pytest.raises(InputError, match="run it in a project"):
            gemini_settings.prepare(
                [],
                Wish(),
                binary="gemini",
                here=home,
                environment={"GEMINI_CLI_HOME": str(home), "GEMINI_API_KEY": "k"},
            )


class TestTheHomeMadeOfLinks:
    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        own = tmp_path / "home" / ".gemini"
        (own / "extensions" / "mine").mkdir(parents=True)
        (own / "projects.json").write_text('{"projects": {"/a": "a"}}')
        (own / "settings.json").write_text("{}")
        (own.parent / ".bashrc").write_text("x")
        return own.parent

    def test_shows_the_users_own_and_the_runs_extension(self, home: Path, tmp_path: Path):
        (tmp_path / "run" / FOLDER).mkdir(parents=True)
        gemini_home.lay(tmp_path / "run", home)
        made = tmp_path / "run" / "home"
        assert (made / ".bashrc").read_text() == "x"
        assert {path.name for path in (made / ".gemini" / "extensions").iterdir()} == {"mine", "cutline"}
        (made / ".gemini" / "settings.json").write_text('{"ui": 1}')
        (made / ".gemini" / "tmp" / "session").write_text("s")
        assert (home / ".gemini" / "settings.json").read_text() == '{"ui": 1}'
        assert (home / ".gemini" / "tmp" / "session").read_text() == "s"

    def test_what_the_client_put_in_place_of_a_link_goes_back(self, home: Path, tmp_path: Path):
        (tmp_path / "run" / FOLDER).mkdir(parents=True)
        back = gemini_home.lay(tmp_path / "run", home)
        made = tmp_path / "run" / "home" / ".gemini"
        new = made / "projects.json.tmp"
        new.write_text('{"projects": {"/a": "a", "/b": "b"}}')
        new.replace(made / "projects.json")
        (made / "agents").mkdir()
        (made / "agents" / "new.md").write_text("n")
        (home / ".gemini" / "projects.json").write_text('{"projects": {"/a": "a", "/c": "c"}}')  # another client's
        back()
        held = json.loads((home / ".gemini" / "projects.json").read_text())
        assert held == {"projects": {"/a": "a", "/b": "b", "/c": "c"}}
        assert (home / ".gemini" / "agents" / "new.md").read_text() == "n"
        assert sorted(path.name for path in (home / ".gemini" / "extensions").iterdir()) == ["mine"]

    def test_a_home_that_was_never_used_is_made_by_the_client(self, tmp_path: Path):
        (tmp_path / "run" / FOLDER).mkdir(parents=True)
        (tmp_path / "new").mkdir()
        back = gemini_home.lay(tmp_path / "run", tmp_path / "new")
        (tmp_path / "run" / "home" / ".gemini" / "settings.json").write_text("{}")
        back()
        assert (tmp_path / "new" / ".gemini" / "settings.json").read_text() == "{}"
