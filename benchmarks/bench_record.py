"""What the record costs: room, a write, a search, a deletion. Run: python benchmarks/bench_record.py [--mb 1000] [--in DIR]

Bodies are made here: results are stretches of the Python files of this installation, some 40 MB, with figures between
them, no two equal. Times are wall-clock, medians unless said otherwise; run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import sysconfig
import tempfile
import time
from pathlib import Path

from cutline.record import Exchange, Record

NOW = 1_790_000_000.0
TOOLS = [{"name": f"tool{n}", "description": f"{n} is what it is " * 40, "input_schema": {}} for n in range(90)]


def pool(most: int = 40_000_000) -> list[list[str]]:
    """Files of the standard library and of what is installed beside Cutline, as lines: real code and real prose."""
    found, size = [], 0
    for root in ("stdlib", "purelib"):
        for file in sorted(Path(sysconfig.get_path(root)).rglob("*.py")):
            try:
                text = file.read_text("utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            if text:
                found.append(text.split("\n"))
                size += len(text)
            if size > most:
                return found
    return found


FILES = pool()


def texts(size: int, seed: int) -> str:
    """Stretches of files with figures between them, as a tool prints them; no two are equal."""
    source = random.Random(seed)
    parts, left = [], size
    while left > 0:
        lines = source.choice(FILES)
        start = source.randrange(len(lines))
        part = "\n".join(lines[start : start + 25]) + f"\n{source.getrandbits(40):x} at line {source.randrange(10**6)}"
        parts.append(part[: max(left, 20)])
        left -= len(part)
    return "\n".join(parts)


def session(number: int, calls: int, size: int) -> list[dict]:
    messages: list[dict] = [{"role": "user", "content": f"Look into part {number}."}]
    for step in range(calls):
        id_, seed = f"toolu_{number}_{step}", number * 100_000 + step
        said = {"type": "text", "text": f"Reading part {step}, because {texts(120, seed)} is suspected."}
        made = {
            "type": "tool_use",
            "id": id_,
            "name": "Bash",
            "input": {"command": f"sed -n {seed}p {texts(30, seed)[:40]}"},
        }
        messages.append({"role": "assistant", "content": [said, made]})
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": texts(size, seed)}]}
        )
    return messages


def exchange(messages: list[dict], name: str, at: float = NOW) -> Exchange:
    last = messages[-1]
    blocks = [{"type": "text", "text": last["content"]}] if isinstance(last["content"], str) else last["content"]
    marked = [
        *messages[:-1],
        {**last, "content": [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]},
    ]
    body = json.dumps({"model": "m", "tools": TOOLS, "messages": marked}, separators=(",", ":")).encode()
    return Exchange(name, "", "claude", "/p", at, body, len(body), "", 200, b"", {}, "turn")


def timed(work, times: int) -> float:
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * 1e3


def writes(folder: Path) -> None:
    """A growing session of 1 MB: each write against an fsync'd write of the new part alone."""
    messages = session(1, 320, 3_000)
    path = folder / "writes" / "record.db"
    took, plain, total = [], [], 0
    with Record(path) as store:
        store.write(exchange(messages[:-120], "s"))
        for end in range(len(messages) - 119, len(messages) + 1, 2):
            grown = exchange(messages[:end], "s")
            part = json.dumps(messages[end - 2 : end]).encode()
            began = time.perf_counter()
            store.write(grown)
            took.append(time.perf_counter() - began)
            began = time.perf_counter()
            with (folder / f"part{end}").open("wb") as out:
                out.write(part)
                out.flush()
                os.fsync(out.fileno())
            plain.append(time.perf_counter() - began)
            total = len(grown.body)
    print(f"write: a body of {total / 1e6:.2f} MB, {len(part):,} bytes of it new: {statistics.median(took) * 1e3:.2f} ms;"
          f" an fsync'd write of the new part alone: {statistics.median(plain) * 1e3:.2f} ms")  # fmt: skip


def corpus(folder: Path, megabytes: int) -> None:
    path = folder / "corpus" / "record.db"
    began, text, number = time.perf_counter(), 0, 0
    with Record(path) as store:
        while text < megabytes * 1_000_000:
            made = exchange(session(number, 125, 8_000), f"s{number}", NOW + number)
            store.write(made)
            text += len(made.body)
            number += 1
    spent = time.perf_counter() - began
    size = path.stat().st_size
    print(
        f"corpus: {text / 1e6:,.0f} MB of bodies in {number:,} sessions, stored in {size / 1e6:,.0f} MB, in {spent:.0f} s"
    )
    source = random.Random(7)
    with Record(path, readonly=True) as store:
        found = store.stats()
        print(f"        {found.calls:,} calls, {found.texts:,} texts")
        seen = [texts(8_000, source.randint(0, number - 1) * 100_000 + source.randint(0, 124)) for _ in range(60)]
        names = [source.choice(re.findall(r"[A-Za-z_]{7,20}", text) or ["import"]) for text in seen]
        figures = [source.choice(re.findall(r"\b[0-9a-f]{9,10}\b", text)) for text in seen]
        lines = [max(text.split("\n")[3:30], key=len).strip()[:60] for text in seen]
        for what, queries in (
            ("a name in the code", names),
            ("a common word", ["return", "self", "import", "error", "value", "the", "str", "for"] * 5),
            ("a figure that stands once", figures),
            ("a whole line", lines),
            ("two names", [f"{one} {other}" for one, other in zip(names, reversed(names), strict=True)]),
            ("a word that is not there", [f"reticulated_{n}_splines" for n in range(40)]),
        ):
            spent_each, hits = [], 0
            for query in queries:
                began = time.perf_counter()
                hits += len(store.search("/p", [query] if what == "a whole line" else query.split(), 20))
                spent_each.append((time.perf_counter() - began) * 1e3)
            spent_each.sort()
            print(f"search: {what}: {statistics.median(spent_each):.1f} ms at the median, {spent_each[-3]:.0f} ms at 95 %;"
                  f" {hits / len(queries):.0f} found")  # fmt: skip
        said = timed(lambda: store.said("/p", ["because", "suspected"], 20), 20)
        print(f"said: the first 20 of {found.texts:,}: {said:.1f} ms")
        one = store.search("/p", [], 1)[0].found.call.address
        print(f"recall by address: {timed(lambda: store.calls('/p', one), 50):.2f} ms")
    with Record(path) as store:
        began = time.perf_counter()
        store.delete(["s1"])
        deleted = time.perf_counter() - began
        store.sweep()
        print(f"delete: {deleted:.1f} s, and {time.perf_counter() - began - deleted:.1f} s to write the file anew")
        began = time.perf_counter()
        faults = store.faults()
        print(f"verify: {time.perf_counter() - began:.0f} s, {len(faults)} faults")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=1_000, help="megabytes of bodies in the searched record")
    parser.add_argument("--in", dest="where", default=None, help="a folder on the disk that is measured")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.where) as folder:
        writes(Path(folder))
        corpus(Path(folder), given.mb)


if __name__ == "__main__":
    main()
