"""What is always asked for: commands that can't be taken back, reach beyond the tree, or hide what they do.

Law: pure but for `places`, which follows links. Words are looked at, not what a program does with them: this protects
from accidents and from the plain forms of harm, it is no sandbox. What is not certain counts as the worst.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from glob import iglob
from itertools import islice
from pathlib import Path

from .commands import Simple, Unclear, Word, taken_apart
from .git_dangers import git_asks

_ALWAYS = {
    **dict.fromkeys(("sudo", "su", "doas", "pkexec", "run0", "runuser"), "runs with another user's rights"),
    **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff", "init", "systemctl", "service"), "steers the machine"),
    **dict.fromkeys(
        ("fdisk", "parted", "mount", "umount", "wipefs", "mkswap", "losetup", "diskutil"), "works on disks"
    ),
    **dict.fromkeys(("crontab", "at", "batch", "launchctl"), "makes something run later"),
    **dict.fromkeys(("passwd", "useradd", "usermod", "userdel", "visudo", "chsh"), "changes users"),
    **dict.fromkeys(
        ("iptables", "nft", "ufw", "insmod", "modprobe", "sysctl", "chroot", "nsenter", "unshare"), "changes the system"
    ),
    **dict.fromkeys(
        ("ssh", "scp", "sftp", "nc", "ncat", "netcat", "socat", "telnet", "ftp"), "reaches another machine"
    ),
    **dict.fromkeys(("killall", "pkill", "kill", "skill", "xkill"), "ends processes that may be others'"),
    **dict.fromkeys(("shred", "dd", "truncate"), "overwrites"),
    **dict.fromkeys(
        (
            "eval",
            "alias",
            "coproc",
            "parallel",
            "popd",
            "enable",
            "expect",
            "script",
            "watch",
            "flock",
            "complete",
            "bind",
            "compgen",
        ),
        "runs what can't be seen here",
    ),
}
_SHELLS = frozenset("sh bash zsh dash ksh mksh ash fish csh tcsh pwsh busybox".split())  # noqa: SIM905
_INTERPRETERS = re.compile(r"(?:python|pypy|perl|ruby|node|deno|bun|php|lua|Rscript|osascript|tclsh)[\d.]*\Z")
_WRAPPERS = frozenset(
    """
    env command builtin exec nohup time timeout nice ionice stdbuf setsid xargs strace ltrace chrt taskset unbuffer
    caffeinate
    """.split()  # noqa: SIM905
)
_SETTERS = frozenset(("read", "printf", "mapfile", "readarray", "unset", "getopts", "let", "wait"))
_RUNNING = (
    *("--to-command", "--checkpoint-action", "--use-compress-program", "--rsh", "--rsync-path", "--split-string"),
    *("--pre", "--compress-program", "--info-script", "--new-volume-script"),
)
_WRITERS = frozenset("rm mv cp ln chmod chown chgrp tee install rsync rmdir unlink mkdir touch patch tar unzip".split())  # noqa: SIM905
_READERS = frozenset("cat head tail less more bat xxd od strings base64 source . cd pushd".split())  # noqa: SIM905
_STEERING = re.compile(
    r"(?:LD_|DYLD_|BASH_|GIT_|PYTHON(?:STARTUP|HOME)|NODE_OPTIONS|PERL5|PERLLIB|RUBY(?:OPT|LIB)|JAVA_TOOL_OPTIONS)|"
    r"(?:PATH|ENV|IFS|PROMPT_COMMAND|SHELLOPTS|EDITOR|VISUAL|PAGER|LESSOPEN|MANPAGER|SSH_ASKPASS|HOME|CDPATH|SHELL)\Z"
)
_PUBLISHING = re.compile(
    r"(?:npm|yarn|pnpm|bun|cargo|poetry|uv|gem|twine|hatch|flit) (?:publish|upload|push|unpublish|yank)\b"
    r"|docker (?:push|system prune|run .*--privileged)|(?:kubectl|helm) (?:delete|uninstall|apply)\b"
    r"|(?:terraform|tofu|pulumi) (?:apply|destroy|up)\b|gh (?:release|repo|pr merge|api|secret|auth)\b"
)
_BIN = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/")
_DEVICES = frozenset(("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero", "/dev/urandom"))
_PATTERNED = frozenset("sed awk gawk mawk grep egrep fgrep rg".split())  # noqa: SIM905
_AWK_HARM = re.compile(r"\bsystem\b|\bgetline\b|\||>\s*[\"/]")
_SED_HARM = re.compile(
    r"(?:^|[;{}\n/\d$!])\s*(?:[wWrR]\s+\S|e(?:\s|\Z))|[/|,#:@!][gpiIm\d]*[ew][gpiIm\d]*(?:\s*(?:\Z|[;}\n])|\s+\S)"
)
_DEEPEST = 5


def of_command(
    command: str, directory: Path, roots: Sequence[Path], environment: Mapping[str, str], deep: int = 0
) -> str:
    """Why a command has to be asked for, one line; "" where nothing speaks against it.

    Args:
        command: what bash would read.
        directory: where it would run.
        roots: the working tree, and what else counts as inside; links followed.
        environment: of the shell.
        deep: how many commands hold this one.
    """
    if deep > _DEEPEST:
        return "it holds commands in commands in commands"
    try:
        simple = taken_apart(command, environment)
    except Unclear as unclear:
        return str(unclear)
    except RecursionError:
        return "it is nested too deeply"
    if not _inside(directory, roots):
        return f"the shell is in {directory}, outside the working tree"
    places = [directory]
    for one in simple:  # wherever it may have gone to, a relative path is looked at from each of them
        program, rest = _program(one.words)
        if program in ("cd", "pushd"):
            where = [word for word in rest if not word.text.startswith("-") or word.text == "-"]
            if not where or where[0].text == "-" or not where[0].certain:
                return f"where `{_short(one.text)}` leads is not certain"
            places += [place / where[0].text for place in list(places)]
            if len(places) > 64:
                return "it changes directory too often to be followed"
    for one in simple:
        if why := _simple(one, places, roots, environment, deep):
            return why
    return ""


def _simple(
    one: Simple, places: Sequence[Path], roots: Sequence[Path], environment: Mapping[str, str], deep: int
) -> str:
    for name, _ in one.assigned:
        if _STEERING.match(name):
            return f"it sets {name}, which changes what other programs do"
    for word in one.targets:
        if not word.certain:
            return "where it writes or reads by a redirection is not certain"
        if why := outside(word, places, roots, environment, bare=True):
            return why
    if one.words and not one.words[0].certain:
        return "which program it runs is not certain"
    for _, word in one.assigned:
        if why := outside(word, places, roots, environment):
            return why
    words = one.words
    while words:
        program, rest = _program(words)
        first = words[0]
        if (
            "/" in first.text
            and not first.text.startswith(_BIN)
            and (why := outside(first, places, roots, environment))
        ):
            return why
        if why := _program_asks(program, rest, one, places, roots, environment, deep):
            return why
        if program not in _WRAPPERS:
            break
        words = _wrapped(rest)
        if words and not words[0].certain:
            return "which program it runs is not certain"
        if program == "xargs" and words and _program(words)[0] in _WRITERS | _SHELLS:
            return f"what `{_short(one.text)}` works on is not certain"
    if one.words and _program(one.words)[0] in ("echo", "printf", "which", "type"):
        return ""  # words that are said
    skipped = _script_of(_program(one.words)[0], one.words[1:]) if one.words else None
    for word in one.words[1:]:
        if word is not skipped and (why := outside(word, places, roots, environment, bare=True)):
            return why
    return ""


def _program_asks(
    program: str,
    rest: Sequence[Word],
    one: Simple,
    places: Sequence[Path],
    roots: Sequence[Path],
    environment: Mapping[str, str],
    deep: int,
) -> str:
    shown = f"`{_short(one.text)}`"
    texts = [word.text for word in rest]
    line = " ".join([program, *texts])
    if program in _ALWAYS:
        return f"{shown}: {program} {_ALWAYS[program]}"
    if program in _WRAPPERS:
        for text in texts:  # where its options end is not certain for all: what stands anywhere in it counts
            inner = Path(text.split()[0]).name if text.split() else ""
            if inner in _ALWAYS:
                return f"{shown}: {inner} {_ALWAYS[inner]}"
    if program in _SETTERS and any(_STEERING.match(text) for text in texts):
        return f"{shown}: sets a variable that changes what other programs do"
    if (
        any(text.startswith(_RUNNING) for text in texts)
        or (program == "rsync" and any(re.match(r"-\w*e", text) for text in texts))
        or (program == "env" and any(re.match(r"-\w*S", text) for text in texts))
        or (program in ("mapfile", "readarray") and "-C" in texts)
        or (program in ("source", ".") and (one.fed or any(text.startswith(("/dev/", "/proc/")) for text in texts)))
    ):
        return f"{shown}: runs what can't be seen here"
    if program.startswith(("mkfs", "fsck")):
        return f"{shown}: {program} works on disks"
    runs_code = program in _SHELLS or _INTERPRETERS.match(program)
    if runs_code and (why := _interpreter(program, rest, one, places, roots, environment, deep)):
        return f"{shown}: {why}"
    if program in _WRITERS | _READERS and any(not word.certain for word in rest):
        return f"what {shown} works on is not certain"
    if program == "rm" and (why := _rm(rest, places, roots)):
        return f"{shown}: {why}"
    if program == "git" and (why := git_asks(texts, any(not word.certain for word in rest))):
        return f"{shown}: {why}"
    if program in ("find", "fd", "fdfind") and (why := _find(rest, places, roots, environment, deep)):
        return f"{shown}: {why}"
    harm = _AWK_HARM if program in ("awk", "gawk", "mawk") else _SED_HARM if program in ("sed", "gsed") else None
    if harm is not None and any(harm.search(text) for text in texts):
        return f"{shown}: its script may run programs or write files"
    if program == "trap" and texts:
        if not rest[0].certain:
            return f"what {shown} runs is not certain"
        return (
            of_command(texts[0], places[0], roots, environment, deep + 1)
            if texts[0] not in ("-", "", "-p", "-l")
            else ""
        )
    if (
        program in ("chmod", "chown")
        and any(re.match(r"-\w*R|--recursive", text) for text in texts)
        and _rm_targets(rest, places, roots)
    ):
        return f"{shown}: changes rights of more than a part of the tree"
    if _PUBLISHING.match(line):
        return f"{shown}: publishes, or changes what others use"
    return ""


def _interpreter(
    program: str,
    rest: Sequence[Word],
    one: Simple,
    places: Sequence[Path],
    roots: Sequence[Path],
    environment: Mapping[str, str],
    deep: int,
) -> str:
    if any(word.substitutes for word in rest):
        return "it runs the output of another command"
    if program not in _SHELLS:
        if one.fed and "pipe" in one.inside and not [word for word in rest if word.text not in ("-", "/dev/stdin")]:
            return "it runs what is piped into it"
        return ""
    for index, word in enumerate(rest):
        if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word.text):
            if index + 1 >= len(rest) or not rest[index + 1].certain:
                return "what it runs is not certain"
            return of_command(rest[index + 1].text, places[0], roots, environment, deep + 1)
    operands = [word for word in rest if not word.text.startswith(("-", "+"))]
    if program == "busybox" and operands:
        return "which program it runs is not certain"
    if not operands or operands[0].text == "/dev/stdin" or any(re.match(r"-\w*s", word.text) for word in rest):
        return "it runs what it is fed with" if one.fed or not operands else ""
    return "" if operands[0].certain else "what it runs is not certain"


def _rm(rest: Sequence[Word], places: Sequence[Path], roots: Sequence[Path]) -> str:
    recursive = any(re.match(r"-\w*[rR]|--recursive", word.text) for word in rest)
    return "removes the working tree, or all that is in it" if recursive and _rm_targets(rest, places, roots) else ""


def _rm_targets(rest: Sequence[Word], places: Sequence[Path], roots: Sequence[Path]) -> bool:
    for word in rest:
        if word.text.startswith("-"):
            continue
        bare = word.text.rstrip("/")
        if re.fullmatch(r"(?:\./|\*/|\.\*|\.?\[.*\]|\?)*[*?.]*", bare) or ".git" in Path(bare).parts:
            return True
        for place in places:
            target = Path(os.path.normpath(place / word.text))
            if any(root == target or root.is_relative_to(target) for root in roots):
                return True
    return False


def _find(
    rest: Sequence[Word], places: Sequence[Path], roots: Sequence[Path], environment: Mapping[str, str], deep: int
) -> str:
    for index, word in enumerate(rest):
        if word.text == "-delete" or word.text.startswith("-fprint") or word.text == "-fls":
            return "deletes or writes what it finds"
        if word.text in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            inner: list[Word] = []
            for part in rest[index + 1 :]:
                if part.text in (";", "+"):
                    break
                inner.append(part)
            program, _ = _program(inner)
            if program in _WRITERS | _SHELLS | _WRAPPERS or not inner or not inner[0].certain:
                return "runs a program that changes things on what it finds"
            if why := _simple(Simple(tuple(inner)), places, roots, environment, deep + 1):
                return why
    return ""


def _program(words: Sequence[Word]) -> tuple[str, Sequence[Word]]:
    return (os.path.basename(words[0].text), words[1:]) if words else ("", ())  # noqa: PTH119


def _wrapped(rest: Sequence[Word]) -> tuple[Word, ...]:
    """The command that a wrapper is given: behind its options, their numbers, and variables."""
    words = list(rest)
    while words and (re.match(r"-|\w+=|[\d.]+[smhdkM]?\Z|\{\}\Z|[IEL]\Z", words[0].text)) and words[0].certain:
        if (
            words[0].text in ("-u", "-C", "-I", "-n", "-P", "-L", "-s", "-k", "-o", "-S", "-a", "-d", "-E")
            and len(words) > 2
        ):
            # Whether the next word belongs to the option differs: what follows it is looked at too.
            words = words[1:] if _program(words[1:])[0] in _ALWAYS else words[2:]
            continue
        words = words[1:]
    return tuple(words)


def _script_of(program: str, rest: Sequence[Word]) -> Word | None:
    """The operand that is a pattern or a script, and no file."""
    if program not in _PATTERNED or any(re.match(r"-\w*[ef]|--(?:regexp|file|expression)", word.text) for word in rest):
        return None
    found = next((word for word in rest if not word.text.startswith("-")), None)
    if found is None:
        return None
    return found


def outside(
    word: Word, places: Sequence[Path], roots: Sequence[Path], environment: Mapping[str, str], *, bare: bool = False
) -> str:
    """Why a word names something outside the tree; "" where it does not, or names no file.

    Args:
        word: of a command.
        places: the directories that it may be relative to.
        roots: what counts as inside.
        environment: where `~` leads.
        bare: look at words without a slash too: they may be links.
    """
    text = word.text
    if re.match(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://", text):
        return ""
    values = [text]
    if text.startswith("-") or re.match(r"\w+=", text):
        values = [
            part for part in (text.partition("=")[2], re.sub(r"^-\w", "", text)) if part.startswith(("/", "~", ".."))
        ]
    for value in [part for given in values for part in ([given, *given.split(":")] if ":/" in given else [given])]:
        if not value or value in _DEVICES or re.match(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://", value):
            continue
        value = value.removeprefix("file://")
        if not bare and "/" not in value and not value.startswith(("~", "..")):
            continue
        if value.startswith("~"):
            if re.match(r"~(?:/|\Z)", value):
                value = environment.get("HOME", "/") + value[1:]
            else:
                return f"{_short(text)} leads to another user's folder"
        if len(value) > 4096 or "\n" in value:
            continue
        for place in places:
            path = place / value
            shown = [path] if not re.search(r"[*?\[]", value) else [path, *_found(path)]
            for candidate in shown:
                if not _inside(candidate, roots):
                    return f"{_short(text)} is outside the working tree"
    return ""


def _found(pattern: Path) -> Iterator[Path]:
    return map(Path, islice(iglob(str(pattern)), 200))  # noqa: PTH207 - relative to the root, as bash would


def _inside(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a path lies inside, both as written and with links followed."""
    try:
        real = Path(os.path.realpath(path))
    except (OSError, ValueError):
        return False
    written = Path(os.path.normpath(path))
    return any(real.is_relative_to(root) for root in roots) and (
        ".." not in path.parts or any(written.is_relative_to(root) for root in roots) or real == written
    )


inside = _inside


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}…"
