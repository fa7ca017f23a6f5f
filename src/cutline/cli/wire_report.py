"""The wire report: what a run sent, what it would have sent, what that cost, and how to go on.

Law: figures of the provider stand as they are, everything estimated has a ~. Standard error is written to, since
standard output is the client's.
"""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console

from .. import mandate, money
from ..launch.claude_code import TOOLS
from ..launch.run import Ended
from ..proxy.ledger import Account, Read, look, tokens_per_byte
from . import paint


def show(ended: Ended, as_json: bool) -> None:
    """Print the report of a run."""
    told = [_of(account, ended) for account in ended.accounts if account.turns or account.agent_turns]
    if as_json:
        print(json.dumps({"exit_code": ended.code, "sessions": told, "faults": list(ended.faults)}), file=_stderr())
        return
    out = paint.console(err=True)
    if not told:
        out.print("cutline: no request of a conversation came through the proxy", style=paint.FAINT)
    for account, figures in zip([a for a in ended.accounts if a.turns or a.agent_turns], told, strict=True):
        _print(out, account, figures)
    for fault in ended.faults:
        out.print(f"cutline: {fault}", style=paint.BAD)


def _stderr() -> Any:
    import sys

    return sys.stderr


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
    rates = money.rates(account.model) if account.model else None
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
        "token_counts": account.counts,
        "sent_bytes": account.sent,
        "uncut_bytes": account.whole,
        "input_tokens": account.used.total_input,
        "uncut_tokens_estimated": round(account.uncut),
        "cache_read_tokens": account.used.cache_read,
        "cache_write_tokens": account.used.cache_write_5m + account.used.cache_write_1h,
        "output_tokens": account.used.output,
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
        "go_on": f"cutline run claude --resume {account.session}" if account.session else "",
        "cut_copy": f"cutline resume {account.session}" if account.session else "",
    }


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
    sub = f", {told['sub_agent_turns']} of them by sub-agents" if told["sub_agent_turns"] else ""
    turns = told["turns"] + told["sub_agent_turns"]
    out.print()
    model = account.model or "model not named"
    out.print(f"Cutline  {account.session[:8]}  {model}, {turns:,} turns{sub}", style="bold")
    made = paint.table("", "sent", "uncut", "share")
    made.add_row(
        "bytes",
        paint.size(account.sent),
        paint.size(account.whole),
        paint.percent(account.sent, account.whole),
    )
    if account.used.total_input:
        uncut = round(account.uncut)
        estimate = "measured" if uncut == account.used.total_input else "estimated"
        made.add_row(
            "input tokens",
            f"{account.used.total_input:,}",
            paint.tokens(uncut, estimate),
            paint.percent(account.used.total_input, uncut),
        )
        if told["cost_usd"] is not None and account.metered:
            made.add_row(
                "cost",
                paint.usd(told["cost_usd"]),
                f"~{paint.usd(told['uncut_cost_usd_estimated'])}",
                paint.percent(told["cost_usd"], told["uncut_cost_usd_estimated"]),
            )
    out.print(made)
    if account.used.total_input:
        out.print(
            f"of the tokens {told['cache_read_tokens']:,} read from the cache, {told['cache_write_tokens']:,} written "
            f"to it; {told['output_tokens']:,} answered",
            style=paint.FAINT,
        )
    if account.steps:
        out.print()
        steps = paint.table("checkpoint", "last uncut", "first cut", "its messages", "new text")
        for step in account.steps:
            steps.add_row(
                step.seam,
                paint.size(step.before),
                paint.size(step.after),
                f"{paint.size(step.before_messages)} → {paint.size(step.after_messages)}",
                paint.size(step.new),
            )
        out.print(steps)
    out.print()
    for line in _lines(account, told):
        out.print(line)
    for line in [*account.refusals, *account.faults]:
        out.print(line, style=paint.BAD)
    if account.session:
        out.print()
        out.print(f"go on with Cutline  {told['go_on']}", style=paint.GOOD)
        out.print(f"or in a cut copy    {told['cut_copy']}", style=paint.GOOD)


def _lines(account: Account, told: dict[str, Any]) -> list[str]:
    lines = []
    spoken = told["narration"]
    if spoken and spoken["calls"]:
        carried = spoken["calls"] - spoken["silent"]
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
        share = paint.percent(carried, spoken["calls"])
        lines.append(f"narrated {share} of {spoken['calls']} calls: {', '.join(ways)}")
        if spoken["hidden_narration_blocks"]:
            lines.append(f"{spoken['hidden_narration_blocks']} narration blocks came without words")
    if account.steps:
        redone = told["work_redone"] or 0
        lines.append(f"work redone: {redone} call{'' if redone == 1 else 's'} repeated one that had left")
    if account.phantoms:
        lines.append(f"{account.phantoms} turns wrote a call out as text and made none")
    if account.compactions:
        lines.append(f"the client summarised the conversation {account.compactions} times")
    lines.append(
        f"Cutline's own schemas and mandate: {paint.size(told['own_bytes_per_request'])}, "
        f"~{told['own_tokens_per_request_estimated']:,} tokens a request"
    )
    return lines
