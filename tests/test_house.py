"""The house: which room may import which, and what the core may not touch. Read from the source, nothing is imported."""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "cutline"

# Lower floors first; a room may import rooms of lower floors and, on its own floor, those named with it.
FLOORS = [
    {"errors": (), "spans": ("errors",), "blocks": ("spans",)},
    {
        "wire": (),
        "specifics": (),
        "clauses": ("specifics",),
        "naming": ("clauses", "specifics"),
        "outcomes": ("clauses", "naming", "specifics"),
        "narration": ("clauses", "naming", "outcomes", "specifics"),
        "repeats": ("specifics",),
        "checkpoint": (),
        "mandate": (),
        "toolset": ("mandate",),
    },
    {
        "trace": (),
        "notice": ("trace",),
        "seam": (),
        "plan": ("notice", "seam"),
        "splice": ("plan", "seam"),
        "native": ("plan", "seam", "splice"),
        "cut": ("plan", "seam", "splice", "notice", "native"),
        "memo": ("cut", "plan", "notice"),
        "verify": ("notice",),
        "cutter": ("cut", "memo", "verify"),
        "evidence": (),
        "contradictions": (),
        "risks": ("contradictions", "evidence", "notice", "trace"),
    },
    {"events": (), "claims": ("events",), "health": (), "measure": (), "money": ()},
    {"encodings": (), "record": ()},
    {"sessions": (), "project": (), "proxy": ()},
    {"recall": (), "bench": ()},
    {"mcp": (), "launch": (), "resources": (), "mcp_serving": ("mcp", "resources"), "view": ()},
    {"transport": (), "integrations": ()},
    {"agent": ()},
    {"demo": ()},
    {"cli": ()},
    {"__main__": ()},
]
CORE = {room for floor in FLOORS[:4] for room in floor}
# The proof stands on its own feet: nothing that decides or splices, and no reader of the cut's.
FORBIDDEN = {"verify": {"spans", "seam", "plan", "splice", "native", "cut", "wire", "memo"}}
EFFECTS = {
    "os",
    "pathlib",
    "time",
    "socket",
    "subprocess",
    "logging",
    "tempfile",
    "shutil",
    "io",
    "random",
    "threading",
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """(dotted name as seen from the package's root or outside, whether at module level)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)} & {
        id(node) for node in tree.body
    }
    inside = path.relative_to(PACKAGE).with_suffix("").parts
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                folder = inside[: len(inside) - node.level]
                base = ["cutline", *folder, *(node.module or "").split(".")]
            else:
                base = (node.module or "").split(".")
            base = [part for part in base if part]
            names = [alias.name for alias in node.names]
            if base == ["cutline"]:
                found += [(f"cutline.{name}", id(node) in top) for name in names]
            else:
                found.append((".".join(base), id(node) in top))
    return found


def floor_of(name: str) -> int:
    return next(number for number, floor in enumerate(FLOORS) if name in floor)


def test_every_room_has_its_place_in_the_plan():
    rooms = {room(path) for path in modules()} - {"__init__"}
    assert rooms == {name for floor in FLOORS for name in floor}


def against_the_arrows(path: Path) -> Iterator[str]:
    mine = room(path)
    if mine == "__init__":
        return
    for name, _ in imports(path):
        if not name.startswith("cutline"):
            continue
        parts = name.split(".")
        if len(parts) < 2 or parts[1] == mine:
            continue
        other = parts[1]
        if not any(other in floor for floor in FLOORS):
            if mine != "cli":
                yield f"imports the package's front ({name})"
            continue
        if other in FORBIDDEN.get(mine, ()):
            yield f"{mine} must not lean on {other}"
        if floor_of(other) == floor_of(mine):
            if other not in FLOORS[floor_of(mine)][mine]:
                yield f"{mine} and {other} are neighbours without a door"
        elif floor_of(other) > floor_of(mine):
            yield f"{mine} imports {other}, which stands above it"


def effects(path: Path) -> Iterator[str]:
    for name, top in imports(path):
        first = name.split(".")[0]
        if first == "cutline":
            continue
        if first == "genai_prices":
            if room(path) != "money" or top:
                yield "prices are loaded when they are asked for"
        elif first not in sys.stdlib_module_names:
            yield f"imports {name}"
        elif first in EFFECTS:
            yield f"imports {name}: the core has no effects"


def against_the_form(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if not ast.get_docstring(ast.parse(text)):
        yield "opens without a word"
    if text.count("\n") > 600:
        yield "is two modules"


def offenders(rule: Callable[[Path], Iterator[str]], paths: Iterable[Path]) -> list[str]:
    """What each of the files does against a rule: one test a rule, since one a file takes longer than the looking."""
    return [f"{path.relative_to(PACKAGE)}: {what}" for path in paths for what in rule(path)]


def test_imports_go_one_way():
    assert offenders(against_the_arrows, modules()) == []


def test_the_core_imports_the_standard_library_only_and_has_no_effects():
    assert offenders(effects, (path for path in modules() if room(path) in CORE)) == []


def test_a_module_opens_with_its_law_and_stays_a_module():
    assert offenders(against_the_form, modules()) == []


def test_the_public_names_are_sorted_and_true():
    import cutline

    assert cutline.__all__ == sorted(cutline.__all__)
    assert all(hasattr(cutline, name) for name in cutline.__all__)
