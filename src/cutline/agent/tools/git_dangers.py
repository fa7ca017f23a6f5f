"""What of git is always asked for: what can't be got back, what others have, and what makes git run a program.

Law: pure, but that links are followed. What is not named here counts as harmless; its words are looked at as any.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_RUNNING = ("--upload-pack", "--receive-pack", "--exec", "--open-files-in-pager", "--ext-diff", "ext::")


def git_asks(texts: Sequence[str], uncertain: bool) -> str:
    """Why a command of git is asked for; "" where nothing speaks against it.

    Args:
        texts: its arguments.
        uncertain: some of them are known at the run only.
    """
    at = 0
    while at < len(texts) and texts[at].startswith("-"):
        if (
            texts[at].startswith(("-c", "--config-env", "--exec-path", "--git-dir", "--work-tree"))
            and texts[at] != "-C"
        ):
            return "a setting given to git can run programs"
        at += 2 if texts[at] == "-C" else 1
    if at >= len(texts):
        return "which command of git it runs is not certain" if uncertain else ""
    verb, rest = texts[at], list(texts[at + 1 :])
    flags = "".join(text[1:] for text in rest if re.match(r"-[a-zA-Z]", text))
    if verb == "push":
        forced = (
            "f" in flags
            or "d" in flags
            or any(
                text.startswith(("--force", "--mirror", "--delete", "--prune", "--receive-pack", "--exec", "+", ":"))
                for text in rest
            )
        )
        return (
            "rewrites or deletes what others have" if forced else "what it pushes is not certain" if uncertain else ""
        )
    if (
        (verb == "reset" and any("--hard".startswith(text) and len(text) > 2 for text in rest))
        or (verb == "clean" and ("f" in flags or any(text.startswith("--f") for text in rest)))
        or (verb == "stash" and rest[:1] in (["drop"], ["clear"]))
        or (verb == "branch" and ("D" in flags or any(text.startswith(("--del", "--force")) for text in rest)))
        or (
            verb in ("checkout", "switch")
            and ("f" in flags or any(t in (".", "--", "--force", "--discard-changes") for t in rest))
        )
        or (verb == "restore" and "--staged" not in rest)
        or verb in ("filter-branch", "filter-repo", "update-ref", "reflog", "gc", "prune")
    ):
        return "throws away work that can't be got back"
    if verb == "config" and not any(text in ("--get", "--list", "-l", "--get-all", "get", "list") for text in rest):
        return "changes settings of git, which can run programs"
    if any(text.startswith(_RUNNING) for text in rest):
        return "makes git run a program"
    return (
        "makes git run a program" if verb in ("bisect", "submodule", "difftool", "mergetool", "daemon") and rest else ""
    )


def gits_own(path: Path, tree: Path) -> Iterator[str]:
    """Why a file of the tree is not written without asking: it makes other programs run what it says."""
    with_links = Path(os.path.realpath(path))
    for one in (path, with_links):
        if one.is_relative_to(tree):
            parts = one.relative_to(tree).parts
            if ".git" in parts or parts[-1:] in ((".mcp.json",), (".envrc",), (".gitattributes",), (".gitmodules",)):
                yield f"{'/'.join(parts)} decides what other programs run"
