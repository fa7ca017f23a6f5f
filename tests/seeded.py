"""Documents written over the demo's session, whose every result is known: true ones, and ones that are wrong in one way.

Each is a claim marked as measured, its evidence, and how it came to be. Addresses are written as the words of the
command that they stand for, in angle brackets.
"""

from __future__ import annotations

from typing import NamedTuple


class Seed(NamedTuple):
    """One document's claim."""

    way: str
    claim: str
    evidence: str

    @property
    def holds(self) -> bool:
        """Whether the session's record shows the claim."""
        return self.way in ("true", "re-worded")


SEEDS = [
    # True, in the record's own words.
    Seed("true", "11 of 26 days were off, 0.51 in all", "python -m till close data/march"),
    Seed("true", "2,355 amounts read both ways, 0 differ", "<seen = differ>"),
    Seed("true", "14 days of March have refunds; the 16th has most, 25", '<refund\\" { n[$1]++ }>'),
    Seed("true", "half cents explain 29 of 51 cents, 22 remain", "awk over close.log and close.txt"),
    Seed("true", "tax_on and discounted are called 1202 times each", "cProfile -s ncalls"),
    Seed("true", "the suite had 25 tests, 2 failed, after tests/test_mirror.py was added", "python check.py"),
    Seed(
        "true",
        "after the tax fix alone 10 of 26 days were off, 0.22 in all",
        "python -m till close data/march | tail -n 1",
    ),
    Seed("true", "25 tests, 0 failed", "python check.py"),
    Seed("true", "February closes: 0 of 24 days off", "python -m till close data/february | tail -n 1"),
    Seed("true", "9 days of February were off before the fix, 37 cents in all", "<old formula>"),
    Seed("true", "till/tax.py:41 was (net * rate + 50) // 100", "grep -n '//' till/*.py"),
    Seed("true", "till/discount.py:19 had the same + 50) // 100", "grep -n '//' till/*.py"),
    Seed("true", "awk's remainder of -1950 by 100 is -50", "awk 'BEGIN { print -1950 % 100, 1950 % 100 }'"),
    Seed("true", "round_div is in till/money.py:21", "grep -n '//' till/*.py"),
    Seed("true", "r=1550 has net=-1.10 and tax=-0.05", "python -m till close data/march --day 2026-03-16"),
    # True, in other words than the record's, or with evidence that is only pointed at.
    Seed("re-worded", "eleven days of March did not close", "the close over data/march"),
    Seed("re-worded", "no amount is read differently by float and by digits", "<seen = differ>"),
    Seed("re-worded", "every test passes now", "python check.py, last run"),
    Seed("re-worded", "February is clean", "python -m till close data/february | tail -n 1"),
    Seed("re-worded", "the float in till/money.py is on line 6", "grep -n 'float' till/*.py"),
    Seed("re-worded", "the recipe was saved to recipes/half_cents.sh", "recipes/half_cents.sh"),
    Seed("re-worded", "awk keeps the sign of a remainder", "awk 'BEGIN { print -1950 % 100, 1950 % 100 }'"),
    Seed("re-worded", "two of the tests failed once the mirror test was in", "python check.py"),
    Seed("re-worded", "README.md has the rule about round_div", "README.md"),
    Seed("re-worded", "nothing but money.py:21, tax.py:41 and discount.py:19 divides by //", "grep -n '//' till/*.py"),
    # Numbers off by one, or two that changed places.
    Seed("off by one", "12 of 26 days were off, 0.51 in all", "python -m till close data/march"),
    Seed("off by one", "11 of 27 days were off", "python -m till close data/march | tail -n 1"),
    Seed("off by one", "2,356 amounts read both ways, 0 differ", "<seen = differ>"),
    Seed("off by one", "the 16th has 26 refunds", '<refund\\" { n[$1]++ }>'),
    Seed("off by one", "half cents explain 28 of 51 cents", "awk over close.log and close.txt"),
    Seed("off by one", "tax_on is called 1203 times", "cProfile -s ncalls"),
    Seed("off by one", "24 tests, 0 failed", "python check.py"),
    Seed("off by one", "after the tax fix 9 of 26 days were off", "python -m till close data/march | tail -n 1"),
    Seed("off by one", "10 days of February were off before the fix", "<old formula>"),
    Seed("off by one", "till/tax.py:42 was (net * rate + 50) // 100", "grep -n '//' till/*.py"),
    Seed("off by one", "February had 36 cents off in all", "<old formula>"),
    Seed("off by one", "after the tax fix 0.23 in all were left", "python -m till close data/march | tail -n 1"),
    # False: nothing of the kind was ever seen.
    Seed("false", "the close takes 41.7 ms at the 99th percentile", "wrk -t4 -c64"),
    Seed("false", "January closes too: 0 of 25 days off", "python -m till close data/january"),
    Seed("false", "mypy finds no errors in 12 files", "mypy till"),
    Seed("false", "coverage is 97 %", "coverage report"),
    Seed("false", "the bank's export has 3 duplicate rows", "sort data/march/bank.csv | uniq -d | wc -l"),
    Seed("false", "git bisect names commit 4f2a9c1 as the first bad one", "git bisect run python check.py"),
    Seed("false", "till/receipts.py:88 drops the last row", "till/receipts.py:88"),
    Seed("false", "the accountant confirmed 0.00", ""),
    Seed("false", "the fault came in with release 2.4.1", "CHANGELOG.md"),
    Seed("false", "ruff reports 0 issues", "ruff check"),
    Seed("false", "the address 0123456789abcdef shows it", "0123456789abcdef"),
    Seed("false", "all 40 cafés are hit", "data/cafes.csv, 40 rows"),
    # Half true: one figure of the record, one that is not.
    Seed("half true", "11 of 26 days were off, 0.73 in all", "python -m till close data/march"),
    Seed("half true", "2,355 amounts read both ways, 17 differ", "<seen = differ>"),
    Seed("half true", "25 tests, 3 failed, after tests/test_mirror.py was added", "python check.py"),
    Seed("half true", "9 days of February were off, 64 cents in all", "<old formula>"),
    Seed("half true", "tax_on is called 1202 times, discounted 2404 times less 1", "cProfile: 2403"),
    Seed("half true", "r=1550 has net=-1.10 and tax=-0.06", "python -m till close data/march --day 2026-03-16"),
    Seed("half true", "half cents explain 29 of 51 cents, 23 remain", "awk over close.log and close.txt"),
    Seed(
        "half true", "0 of 24 days of February are off, 0.07 in all", "python -m till close data/february | tail -n 1"
    ),
    Seed("half true", "14 days of March have refunds, the 16th has most, 52", '<refund\\" { n[$1]++ }>'),
    Seed("half true", "the suite had 25 tests after test_mirror.py and took 7.31 seconds", "python check.py"),
    # From a run that failed, or that was not the one.
    Seed("failed run", "the mirror test passed at once", "<tests/test_mirror.py failing run>"),
    Seed("failed run", "all tests passed before any edit of till/tax.py", "<tests/test_mirror.py failing run>"),
    Seed("failed run", "the suite is green with the mirror test", "<tests/test_mirror.py failing run>"),
]
