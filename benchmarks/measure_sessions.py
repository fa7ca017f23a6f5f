"""The table of the README: what a cut leaves of recorded Claude Code sessions.

    uv run python benchmarks/measure_sessions.py [FOLDER]

Every session is read, cut as `cutline cut` would (no checkpoint: before the last human turn, else at the end),
proven, and measured; nothing is written. Sessions are lettered, not named. The last column is for a warm cache:
as if the cut were made right after the last request.
"""

import sys
from datetime import datetime
from pathlib import Path

from cutline.errors import CutlineError
from cutline.sessions.claude_code import open_session
from cutline.sessions.cutting import prospect
from cutline.verify import verify


def main() -> None:
    default = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions" / "claude-code"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    if not folder.is_dir():
        sys.exit(f"{folder}: no such folder; give one with Claude Code sessions")
    rows = []
    for path in sorted(folder.rglob("*.jsonl")):
        try:
            session = open_session(path)
            last = session.history.requests[-1].timestamp if session.history.requests else None
            found = prospect(session, now=datetime.fromisoformat(last) if last else None)
        except CutlineError:
            continue
        if path.name.startswith("agent-") or found.report.before.bytes < 100_000:
            continue
        verify(session.history.body, found.done.body, at=found.at, session=True)
        rows.append((found, session))
    rows.sort(key=lambda row: -row[0].report.before.bytes)
    print(
        "| session | model | calls before → after | bytes before → after | tokens before → after | words kept | pays back after |"
    )
    print("|---|---|---|---|---|---|---|")
    sums = [0, 0, 0, 0]
    for number, (found, session) in enumerate(rows):
        before, after, kept = found.report.before, found.report.after, found.report.kept
        for index, value in enumerate((before.bytes, after.bytes, before.tokens, after.tokens)):
            sums[index] += value
        print(
            f"| {chr(65 + number)} | {session.history.model.removeprefix('claude-')} "
            f"| {before.rows['tool calls'].blocks} → {after.rows['tool calls'].blocks} "
            f"| {before.bytes:,} → {after.bytes:,} ({100 * after.bytes / before.bytes:.0f} %) "
            f"| {before.tokens:,} → {after.tokens:,} ({100 * after.tokens / before.tokens:.0f} %) "
            f"| {100 * kept.share:.0f} % of {kept.bytes:,} | {found.payback.turns:.1f} |"
        )
    print(
        f"| all {len(rows)} | | | {sums[0]:,} → {sums[1]:,} ({100 * sums[1] / sums[0]:.0f} %) "
        f"| {sums[2]:,} → {sums[3]:,} ({100 * sums[3] / sums[2]:.0f} %) | | |"
    )


if __name__ == "__main__":
    main()
