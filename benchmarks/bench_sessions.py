"""What reading a session file costs: time, and the most memory that the process ever held.

    uv run python benchmarks/bench_sessions.py [--json] [FILE ...]

Without files, made-up Claude Code sessions of 4 MB and 100 MB are read; they are written to a temporary folder
and removed. Each file is read in a process of its own, since the memory that a process gave back is not seen.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SIZES = {"4 MB": 4_000_000, "100 MB": 100_000_000}
LIMITS = {"100 MB": 250}
_WORDS = [
    "the",
    "count",
    "is",
    "off",
    "by",
    "one",
    "because",
    "retry",
    "runs",
    "twice",
    "in",
    "the",
    "worker",
    "and",
    "the",
    "lock",
    "is",
    "taken",
    "late",
]


def records() -> Iterator[dict[str, Any]]:
    """An endless session: narrated calls, results of 200 bytes to 40 KB, thinking, now and then a human turn."""
    parent: str | None = None
    for number in range(10_000_000):
        step, part = divmod(number, 4)
        head = {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/user/project",
            "sessionId": "5e551000-0000-4000-8000-00000000000b",
            "version": "2.1.150",
            "gitBranch": "main",
            "uuid": (parent := f"{number:08x}-0000-4000-8000-000000000000"),
            "timestamp": f"2026-10-05T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000Z",
        }
        id_ = f"toolu_{step:012}"
        if part == 3 or number == 0:
            said = " ".join(_WORDS[(step + n) % len(_WORDS)] for n in range(30))
            result = f"{step}:\t“{said}”\n" * (1 + (200 if step % 9 == 0 else 6))
            content = [{"tool_use_id": id_, "type": "tool_result", "content": result, "is_error": False}]
            more: dict[str, Any] = {"toolUseResult": {"stdout": result, "stderr": "", "interrupted": False}}
            if step % 40 == 0:
                content, more = [{"type": "text", "text": f"And now step {step}, please."}], {}
            yield {**head, "type": "user", "message": {"role": "user", "content": content}, **more}
            continue
        blocks: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": "Hm. " * 40, "signature": "c2lnbmVk" * 40},
            {"type": "text", "text": f"Looking at step {step}, because the count of {step % 97} looks wrong."},
            {"type": "tool_use", "id": id_, "name": "Bash", "input": {"command": f"grep -rn count src | head -{step}"}},
        ]
        usage = {"input_tokens": 4, "cache_read_input_tokens": 20_000 + step, "output_tokens": 60}
        message = {
            "model": "claude-sonnet-4-5",
            "id": f"msg_{step:012}",
            "type": "message",
            "role": "assistant",
            "content": [blocks[part]],
            "usage": usage,
        }
        yield {**head, "type": "assistant", "message": message, "requestId": f"req_{step:012}"}


def write(path: Path, size: int) -> None:
    """A session file of about that many bytes."""
    with path.open("w", encoding="utf-8") as file:
        for record in records():
            file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
            if file.tell() >= size:
                return


def read_here(path: str) -> dict[str, Any]:
    """Read one session in this process, and say what it took."""
    from cutline.sessions.claude_code import open_session

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, wall = time.process_time(), time.perf_counter()
    session = open_session(path)
    return {
        "cpu_seconds": time.process_time() - start,
        "wall_seconds": time.perf_counter() - wall,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "bare_mb": before / 1024,
        "file_mb": Path(path).stat().st_size / 1e6,
        "history_mb": len(session.history.body) / 1e6,
    }


def read_apart(path: Path) -> dict[str, Any]:
    """Read one session in a process of its own."""
    command = [sys.executable, __file__, "--one", str(path)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="What reading a session file costs.")
    parser.add_argument("files", nargs="*", type=Path, help="session files; made-up ones where there are none")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(read_here(asked.one)))
        return
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in asked.files:
            rows[path.name] = read_apart(path)
        for name, size in () if asked.files else SIZES.items():
            path = Path(folder) / f"{size}.jsonl"
            write(path, size)
            rows[name] = read_apart(path)
    if asked.json:
        print(json.dumps(rows, indent=1))
        return
    for name, row in rows.items():
        limit = LIMITS.get(name)
        verdict = f"≤ {limit} MB: {'reached' if row['peak_mb'] <= limit else 'missed'}" if limit else ""
        print(
            f"{name:<24} {row['file_mb']:7.1f} MB, history {row['history_mb']:6.1f} MB: {row['cpu_seconds']:6.2f} s CPU, "
            f"{row['wall_seconds']:6.2f} s, peak {row['peak_mb']:6.0f} MB (before reading {row['bare_mb']:.0f})  {verdict}"
        )


if __name__ == "__main__":
    main()
