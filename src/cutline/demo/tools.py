"""The demo's tools, really carried out. Law: a tool changes nothing outside the project's folder, and its
result holds nothing that a second run would print differently.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..errors import CutlineError

_SECONDS = 30  # for one command; all of them together take about two
_INHERITED = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "TMPDIR")


class Workshop:
    """A project's folder with the tools that work in it."""

    def __init__(self, project: Path, programs: Path) -> None:
        """Make the tools ready.

        Args:
            project: the folder; paths in arguments are relative to it.
            programs: a folder for the `python` that commands find; made here.

        Raises:
            OSError: the folder of programs can't be written.
            CutlineError: it is not known which Python is running.
        """
        if not sys.executable:
            raise CutlineError("the demo can't tell which Python is running; start it with `python -m cutline demo`")
        # A link and not a script: temporary folders are often mounted so that nothing in them is executed.
        programs.mkdir(parents=True, exist_ok=True)
        (programs / "python").symlink_to(sys.executable)
        self._project = project
        self._environment = {name: os.environ[name] for name in _INHERITED if name in os.environ} | {
            "PATH": f"{programs.absolute()}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(project.absolute()),
            "LC_ALL": "C",
            "PYTHONUTF8": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "PYTHON_COLORS": "0",
            "NO_COLOR": "1",
        }

    def carry_out(self, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Carry one call out: the result's text, and whether it is an error."""
        match tool:
            case "Bash":
                return self._bash(arguments["command"])
            case "Read":
                return _numbered(self._text(arguments["file_path"]).splitlines(), 1), False
            case "Edit":
                return self._edit(arguments["file_path"], arguments["old_string"], arguments["new_string"])
            case "Write":
                return self._write(arguments["file_path"], arguments["content"])
        return f"no tool {tool}", True

    def _bash(self, command: str) -> tuple[str, bool]:
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=self._project,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {_SECONDS} seconds", True
        text = done.stdout.decode("utf-8", "replace").rstrip("\n")
        return (f"Exit code {done.returncode}\n{text}", True) if done.returncode else (text, False)

    def _edit(self, path: str, old: str, new: str) -> tuple[str, bool]:
        text = self._text(path)
        if text.count(old) != 1:
            return f"old_string stands {text.count(old)} times in {path}, not once", True
        self._save(path, text.replace(old, new))
        first = text[: text.index(old)].count("\n")
        start, end = max(first - 3, 0), first + new.count("\n") + 4
        lines = text.replace(old, new).splitlines()[start:end]
        return f"Edited {path}. It now reads there:\n{_numbered(lines, start + 1)}", False

    def _write(self, path: str, content: str) -> tuple[str, bool]:
        self._save(path, content)
        return f"Wrote {path}, {content.count(chr(10))} lines.", False

    def _text(self, path: str) -> str:
        return (self._project / path).read_text(encoding="utf-8")

    def _save(self, path: str, text: str) -> None:
        file = self._project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))
