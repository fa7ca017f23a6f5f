"""The session's long commands and the texts it writes. Law: plain constants, sent and saved as they stand.

Only what all POSIX shells, awks and greps agree on: no `sed -i`, no `uniq -c` (its columns differ), no option
that GNU alone has, no number with a leading zero (one awk reads it as octal), no order that a directory or a
hash decides.
"""

from __future__ import annotations

from typing import Any

CLOSE = "python -m till close data/march"

FIND = "find . -type f \\( -name '*.py' -o -name '*.csv' -o -name '*.md' \\) | sort"

AMOUNTS = """\
python -c '
import csv
from pathlib import Path

seen = differ = 0
for file in sorted(Path("data").glob("*/*.csv")):
    for row in csv.DictReader(file.read_text().splitlines()):
        text = row.get("list") or row["amount"]
        seen += 1
        differ += round(float(text) * 100) != int(text.replace(".", ""))
print(f"{seen:,} amounts, {differ} differ")
'"""

REFUNDS = (
    """awk -F, '$3 == "refund" { n[$1]++ } END { for (d in n) print d, n[d] }'"""
    " data/march/receipts.csv | sort"
)

PAIRS = """\
python -c '
from pathlib import Path
from till.close import charges

worked = charges(Path("data/march"))
sale = {c.line.receipt: c for c in worked if c.line.kind == "sale"}
stray = refunds = cents = 0
for back in worked:
    if back.line.kind != "refund":
        continue
    refunds += 1
    first = sale[back.line.of]
    left = first.gross + back.gross
    if left:
        stray += 1
        cents += left
        print(back.line.day, back.line.cafe, back.line.item, f"{back.line.rate}%",
              f"sale {first.line.receipt}: net {first.net} tax {first.tax},",
              f"refund {back.line.receipt}: net {back.net} tax {back.tax}, left {left}")
print(f"{stray} of {refunds} refunds do not undo their sale, {cents} cents left")
'"""

# Three tries at one question: how many cents of each bad day are refunds whose tax falls on half a cent? The
# first forgets that awk's remainder keeps the sign, the second forgets that sales are in the log too.
_TRY = (
    """awk 'FILENAME=="close.log"{KIND split($6,r,"=");split($8,n,"=");v=n[2];SIGN v=int(v*100+.5);"""
    """if(v*r[2]%100==50)t[$1]++;next} /^2026/{d=int($4*100+.5);if(d){print $1,d,t[$1]+0,d-t[$1];"""
    """a+=d;b+=t[$1]}} END{print "all",a,b,a-b}' close.log close.txt"""
)
_REFUNDS_ONLY, _UNSIGNED = 'if($3!="kind=refund")next;', 'sub(/-/,"",v);'
TRY_1 = _TRY.replace("KIND", _REFUNDS_ONLY).replace("SIGN ", "")
TRY_2 = _TRY.replace("KIND ", "").replace("SIGN", _UNSIGNED)
TRY_3 = _TRY.replace("KIND", _REFUNDS_ONLY).replace("SIGN", _UNSIGNED)
SIGN = "awk 'BEGIN { print -1950 % 100, 1950 % 100 }'"

RECIPE = "recipes/half_cents.sh"
RECIPE_TEXT = """\
#!/bin/sh
# Refunds whose tax falls exactly on half a cent:  sh recipes/half_cents.sh data/march
# awk's remainder keeps the sign (-1950 % 100 is -50), so the sign goes before the question is asked.
python -m till close "$1" >/dev/null
awk '$3 == "kind=refund" {
    refunds++
    split($6, rate, "=")
    split($8, net, "=")
    sub(/-/, "", net[2])
    cents = int(net[2] * 100 + 0.5)
    if (cents * rate[2] % 100 == 50) { half++; print $1, $2, $4, $5, $6, $8, $9 }
}
END { printf "%d of %d refunds\\n", half, refunds }' close.log
"""

PROFILE = (
    "python -m cProfile -s ncalls -m till close data/march"
    " | awk '$NF ~ /^(close|discount|money|receipts|tax)[.]py/ && $NF !~ /</ && $1 > 1 { print $1, $NF }'"
    " | sort -k1,1nr -k2,2"
)

MIRROR = '''\
"""A refund undoes its sale, to the cent."""

import unittest

from till.discount import discounted
from till.tax import REDUCED, STANDARD, tax_on

AMOUNTS = range(1, 1001)


class Mirror(unittest.TestCase):
    def test_tax(self):
        wrong = []
        for rate in (REDUCED, STANDARD):
            wrong += [(net, rate) for net in AMOUNTS if tax_on(-net, rate) != -tax_on(net, rate)]
        self.assertEqual(len(wrong), 0, f"for example {wrong[:3]}")

    def test_discount(self):
        wrong = []
        for off in (0, 4, 5, 10):
            wrong += [(net, off) for net in AMOUNTS if discounted(-net, off) != -discounted(net, off)]
        self.assertEqual(len(wrong), 0, f"for example {wrong[:3]}")
'''

BEFORE_FIX = """\
python -c '
from pathlib import Path
from till.close import charge
from till.discount import read_percents
from till.receipts import read_lines

percents = read_percents(Path("data/cafes.csv"))
days = {}
for line in read_lines(Path("data/february/receipts.csv")):
    percent = percents[line.cafe]
    net = (line.listed * (100 - percent) + 50) // 100
    left = net + (net * line.rate + 50) // 100 - charge(line, percent).gross
    if left:
        days[line.day] = days.get(line.day, 0) + left
for day, cents in sorted(days.items()):
    print(day, cents)
print(f"{len(days)} days were off, {sum(days.values())} cents in all")
'"""

DOCUMENT: dict[str, Any] = {
    "done": (
        "March closes with 0.00 on every day. A refund is now its sale with the sign turned, to the cent: "
        "tax and discount both round through round_div in till/money.py. tests/test_mirror.py states it, "
        "check.py is green, the README has the rule."
    ),
    "open": (
        "February has not been closed with the fix. The float in parse_cents breaks the package's own "
        "promise but changes no amount: left alone on purpose, worth a change of its own."
    ),
    "went_wrong": (
        "I rewrote parse_cents before I had measured whether it ever errs; it does not, and I put it back. "
        "My first two counts of half cents were wrong: first none at all (the sign), then far too many "
        "(sales counted in). And I had the discount's fault before my eyes in the list of pairs, and read "
        "only the tax column."
    ),
    "working_directory": "crumb, the project's root; every command here is given from there",
    "facts": [
        {
            "claim": "no day of March is off any more",
            "basis": "measured",
            "evidence": CLOSE,
        },
        {
            "claim": "tests/test_mirror.py passes: 25 tests, 0 failed",
            "basis": "measured",
            "evidence": "python check.py",
        },
        {
            "claim": "awk's remainder keeps the sign of a negative number",
            "basis": "measured",
            "evidence": SIGN,
        },
        {
            "claim": "no sale changes its price: above zero the old and the new rounding agree",
            "basis": "inferred",
            "evidence": "round_div and halves up differ below zero only",
        },
    ],
    "dead_ends": [
        "the float in parse_cents: without it the differences stayed, and both readings agree on every amount in data/"
    ],
    "recipes": [RECIPE],
    "next": "close February with the fix, and say what it was before",
}

CLAIM = "tax and discount mirror, for 1 to 1000 cents, both rates and the cafés' four discounts"
DRAFT = DOCUMENT | {
    "facts": [
        {**fact, "claim": CLAIM, "evidence": "python check.py (tests/test_mirror.py)"} if number == 1 else fact
        for number, fact in enumerate(DOCUMENT["facts"])
    ]
}
"""The checkpoint as the agent first writes it: one claim is marked measured that no result shows."""

QUESTION = 2
"""Which of the human's messages is the question that only narrated specifics answer, from 0."""
