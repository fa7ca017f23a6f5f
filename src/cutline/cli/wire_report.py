"""The wire report: what a run sent, what it would have sent, what that cost, and how to go on.

Law: figures of the provider stand as they are, everything estimated has a ~. Standard error is written to, since
standard output is the client's.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import mandate, money
from ..launch.claude_code import TOOLS
from ..launch.run import Ended
from ..proxy.ledger import Account, Read, look, seller, tokens_per_byte
from ..sessions import clients
from . import paint

_NAMES = 14  # columns for the facts' names


def show(ended: Ended, as_json: bool) -> None:
    """Print the report of a run."""
    shown = [account for account in ended.accounts if account.turns or account.agent_turns or account.compactions]
    told = [_of(account, ended) for account in shown]
    if as_json:
        print(
            json.dumps(
                {"exit_code": ended.code, "sessions": told, "faults": list(ended.faults), "notes": list(ended.notes)}
            ),
            file=sys.stderr,
        )
        return
    out = paint.console(err=True)
    if not told:
        out.print("cutline: no request of a conversation came through the proxy", style=paint.FAINT)
    for account, figures in zip(shown, told, strict=True):
        _print(out, account, figures)
        _go_on(out, figures, ended.copied)
    for note in ended.notes:
        out.print(f"cutline: {note}")
    for fault in ended.faults:
        out.print(f"cutline: {fault}", style=paint.BAD)


def own_bytes() -> int:
    """Bytes that the three schemas and the mandate add to each request, as a client writes them."""
    tools = [
        {"name": name, "description": tool["description"], "input_schema": tool["inputSchema"]}
        for name, tool in zip(TOOLS, mandate.TOOLS, strict=True)
    ]
    return len(json.dumps(tools, separators=(",", ":"))) + len(json.dumps(mandate.MANDATE))


def _of(account: Account, ended: Ended) -> dict[str, Any]:
    """A session's figures, for programs and for the page that people read."""
    read = look(account)
    rate = tokens_per_byte(account)
    rates = money.rates(account.model, seller(account.model)) if account.model else None
    cost = money.cost(account.used, rates) if rates else None
    extra = max(0.0, account.uncut - account.used.total_input)
    requests = account.turns + account.agent_turns + account.others + account.compactions
    return {
        "session": account.session,
        "model": account.model,
        "requests": requests,
        "turns": account.turns,
        "sub_agent_turns": account.agent_turns,
        "other_requests": account.others,
        "compactions": account.compactions,
        "held_back": account.held_back,
        "token_counts": account.counts,
        "sent_bytes": account.sent,
        "uncut_bytes": account.whole,
        "input_tokens": account.used.total_input,
        "uncut_tokens_estimated": round(account.uncut),
        "cache_read_tokens": account.used.cache_read,
        "cache_write_tokens": account.used.cache_write_5m + account.used.cache_write_1h,
        "output_tokens": account.used.output,
        "uncounted_answers": account.uncounted,
        "held_by_the_server": account.held,
        "by_key": account.metered,
        "cost_usd": cost,
        "uncut_cost_usd_estimated": None if cost is None or rates is None else cost + extra * _read_price(rates),
        "own_bytes_per_request": own_bytes(),
        "own_tokens_per_request_estimated": round(own_bytes() * rate),
        "checkpoints": [
            {
                "seam": step.seam,
                "last_uncut_bytes": step.before,
                "first_cut_bytes": step.after,
                "last_uncut_message_bytes": step.before_messages,
                "first_cut_message_bytes": step.after_messages,
                "new_bytes": step.new,
                "last_uncut_tokens": step.before_tokens,
                "first_cut_tokens": step.after_tokens,
            }
            for step in account.steps
        ],
        "narration": None if read is None else _narration(read),
        "work_redone": None if read is None else read.redone,
        "phantom_calls": account.phantoms,
        "refusals": list(account.refusals),
        "faults": list(account.faults),
        "record": ended.record,
        "go_on": f"cutline run {ended.again} {account.session}" if account.session and ended.again else "",
        "cut_copy": f"cutline resume {account.session}" if _can_be_copied(account.session, ended) else "",
    }


def _can_be_copied(session: str, ended: Ended) -> bool:
    """Whether a session has a file: one of a client that was run has; else it is looked for in this directory."""
    return bool(session) and (bool(ended.again) or any(one.file.id == session for one in clients.sessions(Path.cwd())))


def _read_price(rates: money.Rates) -> float:
    """USD for one token that is read from the cache, as uncut history would have been."""
    return money.cost(money.Usage(cache_read=1_000_000), rates) / 1_000_000


def _narration(read: Read) -> dict[str, int]:
    found = read.channels
    return {
        "calls": found.calls,
        "in_text": found.text,
        "in_narration_blocks": found.narration,
        "by_say": found.say,
        "silent": found.silent,
        "hidden_narration_blocks": found.hidden,
    }


def _print(out: Console, account: Account, told: dict[str, Any]) -> None:
    turns = told["turns"] + told["sub_agent_turns"]
    sub = f", {told['sub_agent_turns']:,} by sub-agents" if told["sub_agent_turns"] else ""
    model = account.model or "model not named"
    out.print()
    out.print(
        f"Cutline · {model} · {paint.count(turns, 'turn')}{sub} · session {account.session[:8] or '–'}", style="bold"
    )
    out.print()
    out.print(_sums(account, told))
    if account.steps:
        out.print()
        out.print(_steps(account))
    out.print()
    for name, text in _facts(account, told):
        lines = textwrap.wrap(text, max(30, out.width - _NAMES)) if out.is_terminal else [text]
        for number, line in enumerate(lines):
            out.print(Text.assemble((("" if number else name).ljust(_NAMES), paint.FAINT), line))
    for line in [*account.refusals, *account.faults]:
        out.print(line, style=paint.BAD)


def _go_on(out: Console, told: dict[str, Any], copied: bool) -> None:
    """How to go on; not in the table, since a command that is broken into lines can't be copied."""
    ways = [(way, told[name]) for way, name in (("with Cutline", "go_on"), ("in a cut copy", "cut_copy")) if told[name]]
    if copied:
        ways.reverse()
    if ways:
        out.print()
    for number, (way, command) in enumerate(ways):
        said = f"{'or' if number else 'go on'} {way}"
        out.print(f"{said:<{len('go on ') + max(len(way) for way, _ in ways)}}  {command}", style=paint.GOOD)


def _sums(account: Account, told: dict[str, Any]) -> Table:
    """What was sent beside what would have been sent; what is estimated has a ~."""
    made = paint.table("", "sent", "uncut", "share")
    made.add_row(
        "bytes", paint.size(account.sent), paint.size(account.whole), paint.percent(account.sent, account.whole)
    )
    sent, uncut = account.used.total_input, round(account.uncut)
    if not sent:
        return made
    about = "" if uncut == sent else "~"
    estimate = "estimated" if about else "measured"
    made.add_row("input tokens", f"{sent:,}", paint.tokens(uncut, estimate), about + paint.percent(sent, uncut))
    if told["cost_usd"] is not None and account.metered:
        cost, whole = told["cost_usd"], told["uncut_cost_usd_estimated"]
        made.add_row("cost", paint.usd(cost), about + paint.usd(whole), about + paint.percent(cost, whole))
    return made


def _steps(account: Account) -> Table:
    """Each checkpoint: the last request before its cut, and the first one behind it."""
    made = paint.table("checkpoint", "request", "of it messages", "new text")
    for step in account.steps:
        made.add_row(
            step.seam,
            f"{paint.size(step.before)} → {paint.size(step.after)}",
            f"{paint.size(step.before_messages)} → {paint.size(step.after_messages)}",
            paint.size(step.new),
        )
    return made


def _facts(account: Account, told: dict[str, Any]) -> list[tuple[str, str]]:
    """What else there is to say, a name and a sentence each; nothing of what did not occur."""
    facts = []
    if account.used.total_input:
        read, wrote = told["cache_read_tokens"], told["cache_write_tokens"]
        facts.append(("cache", f"{read:,} tokens read, {wrote:,} written; {told['output_tokens']:,} answered"))
    if account.uncounted:
        counted = "1 answer carries" if account.uncounted == 1 else f"{account.uncounted:,} answers carry"
        facts.append(("not counted", f"{counted} no token counts of the provider's"))
    if account.held:
        facts.append(
            ("not cut", f"{paint.count(account.held, 'turn')} sent only what is new: the server holds the rest")
        )
    spoken = told["narration"]
    if spoken and spoken["calls"]:
        facts.append(("narrated", _spoken(spoken)))
    if not account.steps:
        facts.append(("checkpoints", "none: everything was sent" if account.sent == account.whole else "none new"))
    elif told["work_redone"] is not None:
        redone = told["work_redone"]
        repeated = f"{paint.count(redone, 'call')} repeated one that had left" if redone else "no call repeated"
        facts.append(("work redone", repeated))
    if account.phantoms:
        facts.append(("written out", f"{paint.count(account.phantoms, 'turn')} wrote a call as text; no tool ran"))
    if account.compactions or account.held_back:
        parts = []
        if account.compactions:
            times = "once" if account.compactions == 1 else f"{account.compactions} times"
            parts.append(f"the client summarised the conversation {times}")
        if account.held_back:
            parts.append(f"held back {paint.count(account.held_back, 'time')} for a checkpoint")
        facts.append(("summaries", "; ".join(parts)))
    size, tokens = paint.size(told["own_bytes_per_request"]), told["own_tokens_per_request_estimated"]
    facts.append(("overhead", f"Cutline's tools and mandate: {size}, ~{tokens:,} tokens in each request"))
    return facts


def _spoken(spoken: dict[str, int]) -> str:
    ways = [
        f"{spoken[key]} {word}"
        for key, word in (
            ("in_text", "in text"),
            ("in_narration_blocks", "in narration blocks"),
            ("by_say", "by say"),
            ("silent", "not at all"),
        )
        if spoken[key]
    ]
    share = paint.percent(spoken["calls"] - spoken["silent"], spoken["calls"])
    text = f"{share} of {paint.count(spoken['calls'], 'call')}: {', '.join(ways)}"
    hidden = spoken["hidden_narration_blocks"]
    return f"{text}; {paint.count(hidden, 'narration block')} came without words" if hidden else text
