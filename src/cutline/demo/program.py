"""The small program that the demo's session repairs. Law: whole files as text, and data made by rule.

A wholesale bakery delivers to cafés, and its till is compared with the bank's export every evening. The till
has a real bug. The data is the same on every machine: a fixed linear congruence chooses, nothing else.
"""

from __future__ import annotations

from pathlib import Path

FILES = {
    "README.md": """\
# Crumb

The till of a wholesale bakery. We deliver to cafés by the receipt; on the mornings after market days they
send back what they did not sell, and we refund the line. At the end of the day the till is compared with
the bank.

## Closing a month

    python -m till close data/march
    python -m till close data/march --day 2026-03-09

The first compares every day with the bank's export, the second prints one day line by line. Both write
`close.log`, one line for each line of a receipt:

    2026-03-02 r=1001 kind=sale cafe=anker item=rye rate=5 list=3.90 net=3.90 tax=0.20 total=4.10

`list` is the price before the café's loyalty discount, `net` the price after it, `rate` the tax in per cent.

## Data

| file | what it is |
|---|---|
| data/MONTH/receipts.csv | what the till sold and took back; a refund names in `of` the sale it reverses |
| data/MONTH/bank.csv | what the bank moved on that day; for a refund it reverses the original charge |
| data/cafes.csv | loyalty discount of each café, in per cent |

## Rules of money

- Amounts are whole cents everywhere inside the program; only files and tables show two decimals.
- Discount first, then tax on what is left, each rounded to the cent, per line.
- A day is closed when the difference to the bank is 0.00. Not nearly.

## Tests

    python check.py

Tests live in `tests/`; `check.py` runs them and prints one line each.
""",
    "check.py": '''\
"""Run every test in tests/, one line each. No timings, so that two runs can be compared."""

import sys
import unittest


class Lines(unittest.TestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        print("ok   ", test.id().removeprefix("tests."))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print("FAIL ", test.id().removeprefix("tests."))
        print("      ", err[1])

    def addError(self, test, err):
        super().addError(test, err)
        print("ERROR", test.id().removeprefix("tests."))
        print("      ", type(err[1]).__name__, err[1])


result = Lines()
unittest.defaultTestLoader.discover("tests", top_level_dir=".").run(result)
bad = len(result.failures) + len(result.errors)
print(f"{result.testsRun} tests, {bad} failed")
sys.exit(1 if bad else 0)
''',
    "till/__init__.py": '"""The till: receipts in, a closed day out."""\n',
    "till/__main__.py": """\
import sys

from .close import main

sys.exit(main(sys.argv[1:]))
""",
    "till/money.py": '''\
"""Amounts are whole cents. Nothing in this package keeps an amount as a float."""


def parse_cents(text: str) -> int:
    """Read an amount from an export: "12.34" is 1234, "-0.70" is -70."""
    return round(float(text) * 100)


def format_cents(cents: int) -> str:
    """Write an amount for people: 1234 is "12.34", -70 is "-0.70"."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{whole}.{rest:02d}"


def round_div(numerator: int, denominator: int) -> int:
    """Divide and round to the nearest whole number, halves away from zero.

    Rounding a minus amount gives minus the rounded amount, always. Written for the yearly statement.
    """
    quotient = (2 * abs(numerator) + denominator) // (2 * denominator)
    return -quotient if numerator < 0 else quotient


def total(amounts: list[int]) -> int:
    """Sum of amounts; 0 for none."""
    result = 0
    for amount in amounts:
        result += amount
    return result
''',
    "till/tax.py": '''\
"""Tax on a line of a receipt.

Two rates, and nothing else on our shelves:

    5   bread, rolls, cake: food
    20  coffee by the bag, mugs: everything else

The office wants tax per line, rounded to the cent. (It would also accept tax per receipt; we chose
lines in the first year and have to stay with it.)
"""

REDUCED = 5
STANDARD = 20

RATES = {
    "rye": REDUCED,
    "wheat": REDUCED,
    "roll": REDUCED,
    "bagel": REDUCED,
    "brioche": REDUCED,
    "stollen": REDUCED,
    "coffee": STANDARD,
    "mug": STANDARD,
}


class UnknownRate(ValueError):
    """An export names a rate that does not exist."""


def check_rate(rate: int) -> int:
    """The rate, if it is one of ours."""
    if rate not in (REDUCED, STANDARD):
        raise UnknownRate(f"no such rate: {rate} per cent")
    return rate


def tax_on(net: int, rate: int) -> int:
    """Tax in cents on a net amount in cents: nearest cent, halves up."""
    check_rate(rate)
    return (net * rate + 50) // 100


def gross(net: int, rate: int) -> int:
    """What the café pays for a line."""
    return net + tax_on(net, rate)
''',
    "till/discount.py": '''\
"""Loyalty discounts of the cafés, in whole per cent of the list price."""

from pathlib import Path


def read_percents(path: Path) -> dict[str, int]:
    """Discount of each café, from cafes.csv."""
    percents = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        cafe, percent = line.split(",")
        percents[cafe] = int(percent)
    return percents


def discounted(listed: int, percent: int) -> int:
    """The list price in cents after a discount, to the nearest cent."""
    if not 0 <= percent <= 100:
        raise ValueError(f"a discount of {percent} per cent")
    return (listed * (100 - percent) + 50) // 100
''',
    "till/receipts.py": '''\
"""Read the two exports of a month: what the till did, and what the bank did."""

import csv
from dataclasses import dataclass
from pathlib import Path

from .money import parse_cents
from .tax import check_rate

SALE = "sale"
REFUND = "refund"


@dataclass(frozen=True)
class Line:
    """One line of a receipt. `listed` is in cents, negative for a refund."""

    day: str
    receipt: str
    kind: str
    of: str
    cafe: str
    item: str
    quantity: int
    listed: int
    rate: int


class BadExport(ValueError):
    """An export that can't be trusted; the text names the file and the row."""


def read_lines(path: Path) -> list[Line]:
    """All lines of receipts.csv, in the order of the till."""
    lines = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            kind = row["kind"]
            listed = parse_cents(row["list"])
            if kind not in (SALE, REFUND):
                raise BadExport(f"{path.name}, row {number}: kind {kind!r}")
            if (listed < 0) != (kind == REFUND):
                raise BadExport(f"{path.name}, row {number}: a {kind} of {row['list']}")
            if (kind == REFUND) != bool(row["of"]):
                raise BadExport(f"{path.name}, row {number}: a {kind} that reverses {row['of']!r}")
            lines.append(
                Line(
                    day=row["day"],
                    receipt=row["receipt"],
                    kind=kind,
                    of=row["of"],
                    cafe=row["cafe"],
                    item=row["item"],
                    quantity=int(row["quantity"]),
                    listed=listed,
                    rate=check_rate(int(row["rate"])),
                )
            )
    return lines


def read_bank(path: Path) -> dict[str, int]:
    """Cents that the bank moved on each day, from bank.csv."""
    moved = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["day"] in moved:
                raise BadExport(f"{path.name}: {row['day']} stands there twice")
            moved[row["day"]] = parse_cents(row["amount"])
    return moved
''',
    "till/close.py": '''\
"""Close a month: what the till says against what the bank moved, day by day."""

from dataclasses import dataclass
from pathlib import Path

from .discount import discounted, read_percents
from .money import format_cents, total
from .receipts import Line, read_bank, read_lines
from .tax import tax_on

LOG = Path("close.log")
USAGE = "usage: python -m till close FOLDER [--day DAY]"


@dataclass(frozen=True)
class Charge:
    """A line with its price worked out, all in cents."""

    line: Line
    net: int
    tax: int

    @property
    def gross(self) -> int:
        return self.net + self.tax


@dataclass(frozen=True)
class Day:
    """One day, in cents."""

    day: str
    till: int
    bank: int

    @property
    def difference(self) -> int:
        return self.till - self.bank


def charge(line: Line, percent: int) -> Charge:
    """Discount first, then tax on what is left."""
    net = discounted(line.listed, percent)
    return Charge(line, net, tax_on(net, line.rate))


def charges(folder: Path) -> list[Charge]:
    """Every line of a month with its price."""
    percents = read_percents(folder.parent / "cafes.csv")
    worked = []
    for line in read_lines(folder / "receipts.csv"):
        worked.append(charge(line, percents[line.cafe]))
    return worked


def close(worked: list[Charge], bank: dict[str, int]) -> list[Day]:
    """The days of a month in order. A day that only one side knows counts as 0 on the other."""
    amounts: dict[str, list[int]] = {}
    for entry in worked:
        amounts.setdefault(entry.line.day, []).append(entry.gross)
    days = []
    for day in sorted(amounts.keys() | bank.keys()):
        days.append(Day(day, total(amounts.get(day, [])), bank.get(day, 0)))
    return days


def describe(entry: Charge) -> str:
    """One line of the log."""
    line = entry.line
    return (
        f"{line.day} r={line.receipt} kind={line.kind} cafe={line.cafe} item={line.item} rate={line.rate}"
        f" list={format_cents(line.listed)} net={format_cents(entry.net)}"
        f" tax={format_cents(entry.tax)} total={format_cents(entry.gross)}"
    )


def main(arguments: list[str]) -> int:
    """The command line. Exit code 0 when every day is closed, 1 when one is not, 2 for bad usage."""
    if len(arguments) not in (2, 4) or arguments[0] != "close" or arguments[2:3] not in ([], ["--day"]):
        print(USAGE)
        return 2
    folder = Path(arguments[1])
    worked = charges(folder)
    LOG.write_text("".join(describe(entry) + "\\n" for entry in worked), encoding="utf-8")
    if len(arguments) == 4:
        for entry in worked:
            if entry.line.day == arguments[3]:
                print(describe(entry))
        return 0
    days = close(worked, read_bank(folder / "bank.csv"))
    print(f"{'day':<12}{'till':>10}{'bank':>10}{'difference':>12}")
    for day in days:
        print(
            f"{day.day:<12}{format_cents(day.till):>10}{format_cents(day.bank):>10}"
            f"{format_cents(day.difference):>12}"
        )
    off = [day for day in days if day.difference]
    cents = total([day.difference for day in off])
    print(f"{len(off)} of {len(days)} days are off, {format_cents(cents)} in all")
    return 1 if off else 0
''',
    "tests/__init__.py": "",
    "tests/test_money.py": """\
import unittest

from till.money import format_cents, parse_cents, round_div, total


class Money(unittest.TestCase):
    def test_amounts_are_read_as_cents(self):
        for text, cents in (("0.00", 0), ("0.70", 70), ("12.34", 1234), ("-3.90", -390), ("1204.05", 120405)):
            self.assertEqual(parse_cents(text), cents)

    def test_amounts_are_written_with_two_decimals(self):
        self.assertEqual(format_cents(5), "0.05")
        self.assertEqual(format_cents(-70), "-0.70")

    def test_what_is_written_can_be_read(self):
        for cents in range(-2000, 2000):
            self.assertEqual(parse_cents(format_cents(cents)), cents)

    def test_halves_go_away_from_zero(self):
        self.assertEqual(round_div(1950, 100), 20)
        self.assertEqual(round_div(-1950, 100), -20)

    def test_nothing_sums_to_nothing(self):
        self.assertEqual(total([]), 0)
""",
    "tests/test_tax.py": """\
import unittest

from till.tax import RATES, UnknownRate, check_rate, gross, tax_on


class Tax(unittest.TestCase):
    def test_bread_is_taxed_at_the_reduced_rate(self):
        self.assertEqual(tax_on(340, RATES["wheat"]), 17)

    def test_coffee_is_taxed_at_the_standard_rate(self):
        self.assertEqual(tax_on(980, RATES["coffee"]), 196)

    def test_halves_are_rounded_up(self):
        self.assertEqual(tax_on(390, RATES["rye"]), 20)
        self.assertEqual(tax_on(250, RATES["brioche"]), 13)

    def test_a_refund_gives_the_tax_back(self):
        self.assertEqual(tax_on(-750, RATES["mug"]), -150)

    def test_gross_is_net_and_tax(self):
        self.assertEqual(gross(340, 5), 357)

    def test_an_unknown_rate_is_refused(self):
        with self.assertRaises(UnknownRate):
            check_rate(7)
""",
    "tests/test_discount.py": """\
import unittest

from till.discount import discounted


class Discount(unittest.TestCase):
    def test_no_discount_changes_nothing(self):
        self.assertEqual(discounted(390, 0), 390)

    def test_ten_per_cent(self):
        self.assertEqual(discounted(390, 10), 351)

    def test_a_discount_is_rounded_to_the_cent(self):
        self.assertEqual(discounted(70, 5), 67)

    def test_more_than_everything_is_refused(self):
        with self.assertRaises(ValueError):
            discounted(390, 101)
""",
    "tests/test_receipts.py": """\
import tempfile
import unittest
from pathlib import Path

from till.receipts import BadExport, read_bank, read_lines

HEAD = "day,receipt,kind,of,cafe,item,quantity,list,rate\\n"


class Receipts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name, "export.csv")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, text):
        self.file.write_text(text, encoding="utf-8")
        return self.file

    def test_a_sale_is_read(self):
        (line,) = read_lines(self.write(HEAD + "2026-03-02,1001,sale,,anker,rye,1,3.90,5\\n"))
        self.assertEqual((line.cafe, line.listed, line.rate), ("anker", 390, 5))

    def test_a_refund_is_negative_and_names_its_sale(self):
        (line,) = read_lines(self.write(HEAD + "2026-03-05,1188,refund,1001,anker,rye,1,-3.90,5\\n"))
        self.assertEqual((line.of, line.listed), ("1001", -390))

    def test_a_refund_above_zero_is_refused(self):
        with self.assertRaisesRegex(BadExport, "row 2"):
            read_lines(self.write(HEAD + "2026-03-05,1188,refund,1001,anker,rye,1,3.90,5\\n"))

    def test_a_day_stands_once_in_the_bank_export(self):
        with self.assertRaisesRegex(BadExport, "twice"):
            read_bank(self.write("day,amount\\n2026-03-02,1.00\\n2026-03-02,2.00\\n"))
""",
    "tests/test_close.py": """\
import unittest

from till.close import Charge, Day, charge, close, describe
from till.receipts import Line


def line(day="2026-03-02", kind="sale", listed=340, rate=5):
    return Line(day, "1001", kind, "" if kind == "sale" else "1000", "anker", "wheat", 1, listed, rate)


class Close(unittest.TestCase):
    def test_discount_comes_before_tax(self):
        entry = charge(line(listed=1000), 10)
        self.assertEqual((entry.net, entry.tax, entry.gross), (900, 45, 945))

    def test_a_day_sums_its_lines(self):
        worked = [charge(line(), 0), charge(line(), 0)]
        self.assertEqual(close(worked, {"2026-03-02": 714}), [Day("2026-03-02", 714, 714)])

    def test_a_day_that_only_the_bank_knows_is_off(self):
        self.assertEqual(close([], {"2026-03-03": 100})[0].difference, -100)

    def test_the_log_line_has_what_the_readme_says(self):
        self.assertEqual(
            describe(Charge(line(listed=390), 390, 20)),
            "2026-03-02 r=1001 kind=sale cafe=anker item=wheat rate=5 list=3.90 net=3.90 tax=0.20 total=4.10",
        )
""",
}

_PERCENTS = {"anker": 0, "birke": 5, "dorn": 0, "elster": 10, "falke": 0, "ginster": 5, "hafen": 0, "iris": 4}
_PRICES = {
    "rye": (390, 5),
    "wheat": (340, 5),
    "roll": (70, 5),
    "bagel": (110, 5),
    "brioche": (250, 5),
    "stollen": (620, 5),
    "coffee": (980, 20),
    "mug": (750, 20),
}
_SALES_A_DAY = 40


def write(folder: Path) -> None:
    """Write the program and its data into `folder`, which is made where it is absent. Raises OSError."""
    files = dict(FILES)
    files["data/cafes.csv"] = "cafe,percent\n" + "".join(f"{cafe},{off}\n" for cafe, off in _PERCENTS.items())
    # 2 February 2026 was a Monday and so was 2 March: day numbers are enough of a calendar.
    for month, number, last, seed in (("february", 2, 28, 7), ("march", 3, 31, 13)):
        files[f"data/{month}/receipts.csv"], files[f"data/{month}/bank.csv"] = _month(number, last, seed)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def _month(month: int, last: int, seed: int) -> tuple[str, str]:
    """A month's two exports. The bank reverses a charge exactly, whatever the till makes of the refund."""
    state = seed

    def below(limit: int) -> int:
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**31
        return (state >> 12) % limit

    rows = ["day,receipt,kind,of,cafe,item,quantity,list,rate"]
    bank = ["day,amount"]
    receipt = 1000
    sold: list[tuple[int, str, str, int]] = []  # the day's sales: receipt, café, item, quantity
    for number in range(2, last + 1):
        weekday = (number - 2) % 7
        if weekday == 6:
            continue
        day, moved = f"2026-{month:02d}-{number:02d}", 0
        # Market is on Wednesday and Saturday; what was not sold comes back on the next working day. Broken
        # mugs come back on any day.
        for of, cafe, item, quantity in sold:
            if below(100) < (42 if weekday in (0, 3) else 18 if item == "mug" else 0):
                receipt += 1
                price, rate = _PRICES[item]
                listed = price * quantity
                rows.append(f"{day},{receipt},refund,{of},{cafe},{item},{quantity},-{_two(listed)},{rate}")
                moved -= _charged(listed, cafe, rate)
        sold = []
        for _ in range(_SALES_A_DAY):
            receipt += 1
            cafe = list(_PERCENTS)[below(len(_PERCENTS))]
            item = list(_PRICES)[below(len(_PRICES))]
            quantity = 1 + below(12)
            price, rate = _PRICES[item]
            listed = price * quantity
            rows.append(f"{day},{receipt},sale,,{cafe},{item},{quantity},{_two(listed)},{rate}")
            moved += _charged(listed, cafe, rate)
            sold.append((receipt, cafe, item, quantity))
        bank.append(f"{day},{_two(moved)}")
    return "\n".join(rows) + "\n", "\n".join(bank) + "\n"


def _charged(listed: int, cafe: str, rate: int) -> int:
    net = (listed * (100 - _PERCENTS[cafe]) + 50) // 100
    return net + (net * rate + 50) // 100


def _two(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"
