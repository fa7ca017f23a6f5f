"""What is written for Windows and macOS, each piece by itself. None of it was run there (docs/architecture.md)."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cutline.cli import rerun
from cutline.errors import InputError
from cutline.launch import gemini_home, gemini_settings, setup_clients
from cutline.launch.run import check
from cutline.launch.terminal import Terminal
from cutline.proxy import state
from cutline.record import place
from cutline.resources import _bytes
from cutline.sessions import files, mini_swe_agent
from cutline.sessions.copilot_cli import copy as copilot


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without fcntl."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setattr(state, "fcntl", None)


@pytest.fixture
def no_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system whose files have no owner by number, and whose modes say nothing of others."""
    for name in ("getuid", "geteuid"):
        monkeypatch.delattr(os, name)


class TestRuns:
    def test_have_a_folder_named_by_the_user(self, no_owners: None, no_locks: None, tmp_path: Path, monkeypatch: Any):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        monkeypatch.setenv("USERNAME", "ada")
        folder = state.make(4711)
        folder.lock.close()
        assert folder.path.parent == tmp_path / "cutline-ada"

    def test_live_while_what_they_hold_open_cant_be_removed(self, no_locks: None, tmp_path: Path, monkeypatch: Any):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        dead, living = state.make(1), state.make(2)
        for folder in (dead, living):
            folder.lock.close()
        unlink = Path.unlink

        def in_use(path: Path, missing_ok: bool = False) -> None:
            if path.parent == living.path:
                raise PermissionError(13, "used by another process")  # as Windows says of an open file
            unlink(path, missing_ok)

        monkeypatch.setattr(Path, "unlink", in_use)
        assert [folder for folder, _ in state.running()] == [living.path]
        state.make(3).lock.close()
        assert living.path.exists() and not dead.path.exists(), "what a dead run left is removed by the next one"

    def test_of_a_cmd_file_with_line_breaks_are_refused_before_they_begin(self):
        check("C:\\npm\\claude.CMD", ["--model", "opus"])
        check("C:\\bin\\claude.exe", ["a\nb"])
        check("/usr/bin/claude", ["a\nb"])
        with pytest.raises(InputError, match=r"claude\.CMD: a \.cmd file is given no line breaks"):
            check("C:\\npm\\claude.CMD", ["a\nb"])


class TestTheTerminal:
    @pytest.fixture(autouse=True)
    def windows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("SIGHUP", "SIGQUIT"):
            monkeypatch.delattr(signal, name)
        monkeypatch.delattr(os, "WUNTRACED")
        monkeypatch.setattr(sys, "platform", "win32")

    def test_waits_for_a_child_without_stopping_it(self):
        with Terminal() as terminal:
            assert terminal.run([sys.executable, "-c", "raise SystemExit(3)"], os.environ) == 3

    def test_sends_no_interrupt_on_since_it_reaches_everything_by_itself(self):
        sent: list[int] = []
        with Terminal() as terminal:
            terminal._child = SimpleNamespace(poll=lambda: None, send_signal=sent.append)  # type: ignore[assignment]
            terminal._take(signal.SIGINT, None)
            terminal._take(signal.SIGTERM, None)
        assert sent == [signal.SIGTERM]


class TestFiles:
    def test_are_written_without_locks_and_left_overs_stay(self, no_locks: None, tmp_path: Path):
        with files.create(tmp_path / "a.part") as handle:
            handle.write(b"x")
        files.clear_left_overs(tmp_path, "*.part")
        assert (tmp_path / "a.part").read_bytes() == b"x"
        assert copilot._hold(tmp_path) == -1

    def test_of_the_record_are_taken_where_nothing_tells_of_an_owner(self, no_owners: None, tmp_path: Path):
        (tmp_path / "cutline").mkdir(mode=0o777)
        path = tmp_path / "cutline" / "record.db"
        path.touch(0o666)
        assert place.prepare(path) == ()

    def test_are_read_where_links_cant_be_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        for name in ("O_NOFOLLOW", "O_NONBLOCK"):
            monkeypatch.delattr(os, name)
        (tmp_path / "recipe.sh").write_text("make")
        assert _bytes(tmp_path / "recipe.sh", "recipe.sh") == b"make"

    def test_of_a_home_without_links_are_said(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        def refused(path: Path, target: Path, target_is_directory: bool = False) -> None:
            raise OSError(22, "A required privilege is not held by the client", str(path))

        monkeypatch.setattr(Path, "symlink_to", refused)
        with pytest.raises(InputError, match=r"a required privilege is not held.*a home made of links"):
            gemini_home.lay(tmp_path / "run", tmp_path / "home")


class TestPlaces:
    @pytest.mark.parametrize(
        ("platform", "where"),
        [
            ("darwin", "{home}/Library/Application Support/mini-swe-agent"),
            ("win32", "{local}/mini-swe-agent/mini-swe-agent"),
        ],
    )
    def test_of_mini_swe_agent(self, platform: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("LOCALAPPDATA", "/local")
        monkeypatch.delenv("MSWEA_GLOBAL_CONFIG_DIR", raising=False)
        assert mini_swe_agent._folder() == Path(where.format(home=tmp_path, local="/local"))

    @pytest.mark.parametrize("platform", ["darwin", "win32", "linux"])
    def test_of_geminis_settings_for_the_machine(self, platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(sys, "platform", platform)
        read: list[Path] = []
        monkeypatch.setattr(gemini_settings, "_read", lambda path: read.append(path) or {})
        gemini_settings._layers(tmp_path, {})
        folder = gemini_settings._SYSTEM.get(platform, "/etc/gemini-cli")
        assert [path.name for path in read] == ["system-defaults.json", "settings.json", "settings.json"]
        assert str(read[0]).startswith(folder) and str(read[2]).startswith(folder)

    def test_of_a_home_that_no_variable_names(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(Path, "home", lambda: tmp_path)
        made = setup_clients.given("claude", {}, "C:\\Python\\python.exe")
        assert made.folder == tmp_path / ".claude"
        assert made.files[0].entries[0].value["command"] == "C:\\Python\\python.exe"


def test_a_command_that_takes_too_long_is_ended_where_there_are_no_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delattr(os, "killpg")
    wanted = rerun.Command("sleep 30", ["sleep", "30"], tmp_path, 0.2)
    with pytest.raises(InputError, match=r"took longer than 0\.2 s and was ended"):
        rerun.run(SimpleNamespace(), wanted)  # type: ignore[arg-type]
