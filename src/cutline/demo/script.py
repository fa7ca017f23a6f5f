"""The session's words and the calls they are about. Law: what is said here is said of replies that are really
produced when the demo runs; `shows` lists what a reply must contain for the words after it to be true.

The agent narrates as the mandate asks: before a call what, why and what it expects; after it what came of it,
with specifics, and whether that is measured or inferred.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import commands
from .model import Asked

HANDOFF, RECALL = "micro_handoff", "recall"
LIST = "stray_refunds.txt"


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call.

    Attributes:
        tool: the tool's name as on the wire.
        arguments: its arguments, or what makes them of the request that is answered.
        shows: what its result must contain, word for word; the words after the call rely on it.
        fails: a command that is meant to end with an exit code other than 0.
        tag: a name by which this call is found again; "" for most.
        returns: the tag of a call whose whole result must stand in this one's; "" for most.
    """

    tool: str
    arguments: dict[str, Any] | Callable[[Asked], dict[str, Any]]
    shows: tuple[str, ...] = ()
    fails: bool = False
    tag: str = ""
    returns: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """One message of the agent: perhaps thinking, then words, then calls.

    Attributes:
        says: the words.
        calls: made in parallel; their results come back in one message.
        thinks: a thinking block before the words; "" for none.
        hint: what the human typed while the calls ran; it arrives behind their results. "" for nothing.
    """

    says: str
    calls: tuple[Call, ...] = ()
    thinks: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Human:
    """One message of the human."""

    says: str


def _sh(command: str, *shows: str, fails: bool = False, tag: str = "") -> Call:
    return Call("bash", {"command": command}, shows, fails, tag)


def _read(path: str, *shows: str) -> Call:
    return Call("read", {"file_path": path}, shows)


def _edit(path: str, old: str, new: str) -> Call:
    return Call("edit", {"file_path": path, "old_string": old, "new_string": new}, (f"{path} changed, ",))


def _write(path: str, content: str, *shows: str) -> Call:
    return Call("write", {"file_path": path, "content": content}, shows)


SPECIFICS = ("till/tax.py:41", "42 of 162 refunds")
"""What the human's last question needs; said before the seam, and in no document."""

SCRIPT: tuple[Agent | Human, ...] = (
    Human(
        "Our month doesn't close. `python -m till close data/march` compares the till with the bank, day by "
        "day, and on some days we are off by a few cents: never much, never the same. The accountant wants "
        "it at zero, or explained. Can you find out why, and fix it? The tests are `python check.py`. Say "
        "what you do as you go, please; I'm reading along."
    ),
    Agent(
        "I'll get the lie of the land before I form an opinion: `find` over the Python, CSV and Markdown "
        "files. I expect a small package with its tests and the month's exports, and I'd like to know what "
        "there is before I say what is wrong with it.",
        (
            _sh(
                commands.FIND,
                "./data/february/receipts.csv",
                "./data/march/bank.csv",
                "./till/receipts.py",
            ),
        ),
    ),
    Agent(
        "Small indeed: seven modules in till/, five files of tests, and two months of exports, data/february "
        "beside data/march. Next I read README.md, because I want the shop's own definition of “closed” and "
        "not mine. Alongside it I run `python check.py`; I expect it green, else somebody would have noticed "
        "long ago.",
        (
            _read("README.md", "A day is closed when the difference to the bank is 0.00. Not nearly."),
            _sh("python check.py", "23 tests, 0 failed"),
        ),
    ),
    Agent(
        "README.md is strict, and I like it for that: a day is closed at 0.00, “Not nearly”. The suite is "
        "green, 23 tests, 0 failed, so whatever this is, no test describes it. Now the complaint itself: I "
        "run the close over data/march and keep the table in close.txt, because I'll want to compare with it "
        "later. I expect a few days with cents in the last column.",
        (
            _sh(
                f"{commands.CLOSE} | tee close.txt",
                "2026-03-09      369.75    369.74        0.01",
                "2026-03-16       49.81     49.71        0.10",
                "11 of 26 days are off, 0.51 in all",
            ),
        ),
    ),
    Agent(
        "Measured: 11 of 26 days are off, 0.51 in all, from 0.01 on the 9th to 0.10 on the 16th. One thing "
        "strikes me more than the size: not one difference is negative. The till always says more than the "
        "bank. Noise would go both ways, so I infer a bias, something that leans to one side. I read "
        "till/close.py, where the two sides meet; I expect plain sums of cents and want to see who works the "
        "amounts out.",
        (
            _read(
                "till/close.py",
                "    43\t    net = discounted(line.listed, percent)",
                "    44\t    return Charge(line, net, tax_on(net, line.rate))",
            ),
        ),
    ),
    Agent(
        "till/close.py only adds whole cents. It divides nothing; lines 43 and 44 hand the arithmetic on, to "
        "`discounted` and then to `tax_on`. The amounts come in through till/receipts.py and till/money.py, "
        "so I read those two together, looking for anything that isn't a whole number.",
        (
            _read("till/receipts.py", 'listed = parse_cents(row["list"])'),
            _read("till/money.py", "     6\t    return round(float(text) * 100)"),
        ),
        thinks=(
            "Cents that go missing: nine times out of ten it is a float somewhere between the file and the "
            "sum. The module's docstring promises that there is none. Let me see whether the code keeps the "
            "promise."
        ),
    ),
    Agent(
        "There: till/money.py:6 is `round(float(text) * 100)`, in a module whose first line promises that "
        "nothing is kept as a float, and till/receipts.py sends every amount through it (`parse_cents`). "
        "That's my suspect. I grep till/ for `float` to see whether it acts alone; I expect one line of "
        "code.",
        (
            _sh(
                "grep -n 'float' till/*.py",
                "till/money.py:1:",
                "till/money.py:6:    return round(float(text) * 100)",
            ),
        ),
    ),
    Agent(
        "Two hits, till/money.py:1 and till/money.py:6, and the first is the promise itself. So I edit "
        "till/money.py: line 6 shall take the digits as they stand, with the point removed, because that "
        "can't round at all. I expect the 0.51 to go away, or at least to shrink.",
        (
            _edit(
                "till/money.py",
                "    return round(float(text) * 100)",
                '    return int(text.replace(".", ""))',
            ),
        ),
    ),
    Agent(
        'The edit is in, line 6 now reads `return int(text.replace(".", ""))`. I close data/march again and '
        "look at the last line only; I expect less than 0.51.",
        (_sh(f"{commands.CLOSE} | tail -n 1", "11 of 26 days are off, 0.51 in all"),),
    ),
    Agent(
        "Still 11 of 26 days, still 0.51: not one cent moved. I was wrong, and in a way worth naming: I "
        "changed code before I had measured whether the old code ever errs. So I measure it now: `python -c` "
        "over every amount in all four exports under data/, the float's reading against the digits as they "
        "stand. This time I expect 0 differences.",
        (_sh(commands.AMOUNTS, "2,355 amounts, 0 differ"),),
    ),
    Agent(
        "Measured: 2,355 amounts, 0 differ. The float is ugly, and innocent. I put till/money.py back as it "
        "was, since a change that mends nothing has no business in this fix; the broken promise deserves a "
        "change of its own.",
        (
            _edit(
                "till/money.py",
                '    return int(text.replace(".", ""))',
                "    return round(float(text) * 100)",
            ),
        ),
        hint=(
            "One thing from the shop, in case it helps: it seems to me the bad days are the ones when the "
            "cafés send bread back. Could be nothing."
        ),
    ),
    Agent(
        "till/money.py is back, 1 line added, 1 removed: line 6 is `round(float(text) * 100)` again. And thank you, "
        "that is a better lead than mine: refunds are the only amounts below zero, and a bias to one side fits them. "
        "I count refunds per day in data/march/receipts.csv with awk and hold the count against the 11 bad days; I "
        "expect refunds on every one.",
        (
            _sh(
                commands.REFUNDS,
                "2026-03-04 2\n",
                "2026-03-13 1\n",
                "2026-03-14 2\n",
                "2026-03-16 25\n",
                "2026-03-31 2",
            ),
        ),
    ),
    Agent(
        "You were right. 14 days have refunds, and all 11 bad days are among them; no day without a refund "
        "is off. Three days have refunds and close all the same: the 4th (2 refunds), the 13th (1) and the "
        "31st (2). So a refund is needed for the fault, and not enough for it; measured, for March. The 14th "
        "is odd: 2 refunds, and 0.04 off. I take the worst day apart, `--day 2026-03-16`, because its 25 "
        "refunds leave 0.10; I expect a refund whose cents don't match those of a sale.",
        (
            _sh(
                f"{commands.CLOSE} --day 2026-03-16",
                "r=1550 kind=refund cafe=hafen item=bagel rate=5 list=-1.10 net=-1.10 tax=-0.05",
                "r=1567 kind=refund",
                "r=1607 kind=sale",
            ),
        ),
    ),
    Agent(
        "25 refunds, r=1543 to r=1567, then 40 sales. r=1550 gives a bagel back, net=-1.10, with tax=-0.05, "
        "and 5 per cent of 1.10 is five and a half. That smells of rounding, but one line proves nothing. "
        "The bank is the wrong judge here; the better one is the till itself: each refund names the sale "
        "that it reverses. `python -c` over all pairs in data/march: I expect some refunds that don't undo "
        "their sale, and, if this is the whole story, 51 cents left in all.",
        (
            _sh(
                commands.PAIRS,
                "hafen bagel 5% sale 1515: net 110 tax 6, refund 1550: net -110 tax -5, left 1",
                "42 of 162 refunds do not undo their sale, 51 cents left",
                tag="pairs",
            ),
        ),
    ),
    Agent(
        "There it is, and it needs no bank: 42 of 162 refunds don't undo their own sale, and what they leave "
        "is 51 cents, the whole difference. Sale 1515 charged 6 cents of tax for that bagel, refund 1550 "
        "gave 5 back. I read till/tax.py, where I expect a rounding that treats minus otherwise than plus, "
        "and tests/test_tax.py, to learn why no test ever saw it.",
        (
            _read(
                "till/tax.py",
                '    39\t    """Tax in cents on a net amount in cents: nearest cent, halves up."""',
                "    41\t    return (net * rate + 50) // 100",
            ),
            _read("tests/test_tax.py", '    18\t        self.assertEqual(tax_on(-750, RATES["mug"]), -150)'),
        ),
        thinks=(
            "42 stray refunds but 51 cents, so some leave two cents. Keep that in mind: one rounding can't "
            "be two cents wrong."
        ),
    ),
    Agent(
        "till/tax.py:41 is `(net * rate + 50) // 100`, and line 39 says it in words: “halves up”. For a "
        "refund, up is towards zero: 5.5 cents of tax become 6 when we sell and 5 when we take back. And the "
        "one refund in tests/test_tax.py, line 18, is a mug at 20 per cent, where whole cents never make "
        "half a cent (inferred from the arithmetic): that test could not fail. Before I mend anything: do "
        "such half cents explain all 51? I ask close.log and close.txt, day by day, with awk: cents off, "
        "half cents, rest. I expect a rest of 0.",
        (_sh(commands.TRY_1, "all 51 0 51"),),
    ),
    Agent(
        "“all 51 0 51”: not one half cent in the month, and r=1550 alone is one. So my question is wrong, "
        "not the world. I suspect awk's remainder of a number below zero, and ask it: `print -1950 % 100, "
        "1950 % 100`, where I expect -50 before the 50. With it goes the second try over close.log and "
        "close.txt, the sign stripped; there I expect no day with more half cents than cents.",
        (
            _sh(commands.SIGN, "-50 50"),
            _sh(commands.TRY_2, "2026-03-16 10 13 -3", "all 51 104 -53"),
        ),
    ),
    Agent(
        "“-50 50”: awk keeps the sign, so nothing below zero ever equals 50. But now it's too much: 104 half "
        "cents, and 13 on the 16th where only 10 are missing. My own doing: with the sign I also threw out "
        "the condition that keeps sales away. Third try on close.log and close.txt, both mended; I expect a "
        "rest of 0, and no minus.",
        (_sh(commands.TRY_3, "2026-03-14 4 0 4", "2026-03-19 7 7 0", "all 51 29 22", tag="craft"),),
    ),
    Agent(
        "“all 51 29 22”. The numbers hold together at last, and they don't say what I had hoped: half cents "
        "of tax explain 29 of the 51 cents, 22 remain. On the 19th they explain 7 of 7, on the 14th 0 of 4. "
        "So there is a second fault, and had I mended the first and looked at the tests, I'd have called it "
        "done. The useful half of that awk goes to recipes/half_cents.sh before I lose it: it lists such "
        "refunds for any month, and you may want it again.",
        (_write(commands.RECIPE, commands.RECIPE_TEXT, f"{commands.RECIPE} made, 13 lines added"),),
    ),
    Agent(
        "Saved, 13 lines. I run it, `sh recipes/half_cents.sh data/march`, because a recipe nobody has run "
        "is a rumour; I expect it to find the same 29.",
        (_sh(f"sh {commands.RECIPE} data/march", "29 of 162 refunds"),),
    ),
    Agent(
        "29 of 162 refunds, the same 29. For the other 22 cents I go back to the list of pairs, and I have "
        "to laugh: it was before my eyes. Sale 1507 has a net of 713, its refund 1545 one of -712. That is a "
        "cent lost before tax, and I had read only the tax column. I profile a close by its call counts, to "
        "see which functions touch every line; I expect `discounted` beside `tax_on`.",
        (_sh(commands.PROFILE, "1202 discount.py:15(discounted)", "1202 tax.py:38(tax_on)"),),
    ),
    Agent(
        "As expected, `discounted` and `tax_on` are called 1202 times each, once for every line. And "
        "something I did not look for: `round_div`, which I saw in till/money.py rounding halves away from "
        "zero, isn't in the profile at all. The right tool lies in the drawer. I grep till/ for `//` to find "
        "everyone who divides by hand; I expect till/tax.py and till/discount.py.",
        (
            _sh(
                "grep -n '//' till/*.py",
                "till/discount.py:19:    return (listed * (100 - percent) + 50) // 100",
                "till/money.py:21:",
                "till/tax.py:41:    return (net * rate + 50) // 100",
            ),
        ),
    ),
    Agent(
        "Three lines: till/money.py:21 is `round_div` itself, till/tax.py:41 we know, and "
        "till/discount.py:19 is the same idiom, `+ 50) // 100`, surely copied. I read till/discount.py "
        "around it, because I want to know whether anyone relies on halves going up.",
        (
            _read(
                "till/discount.py",
                '    16\t    """The list price in cents after a discount, to the nearest cent."""',
            ),
        ),
    ),
    Agent(
        "Nobody does: line 16 of till/discount.py promises “to the nearest cent” and no more. Before I mend, "
        "a test that can fail: tests/test_mirror.py says that a refund is its sale with the sign turned, for "
        "1 to 1000 cents, both rates, our four discounts.",
        (_write("tests/test_mirror.py", commands.MIRROR, "tests/test_mirror.py made"),),
    ),
    Agent(
        "Wrote tests/test_mirror.py. I run `python check.py` and expect exactly two failures, test_tax and "
        "test_discount, or I have understood nothing.",
        (
            _sh(
                "python check.py",
                "FAIL  test_mirror.Mirror.test_discount",
                "150 != 0 : for example [(10, 5), (30, 5), (50, 5)]",
                "FAIL  test_mirror.Mirror.test_tax",
                "50 != 0 : for example",
                "25 tests, 2 failed",
                fails=True,
            ),
        ),
    ),
    Agent(
        "25 tests, 2 failed, the right two: test_tax for 50 amounts, test_discount for 150. I mend tax alone "
        "first, two edits in till/tax.py: the import, and line 41 through `round_div`. If my count is true, "
        "22 cents must be left after it; a fix with a forecast is worth more than a fix.",
        (
            _edit(
                "till/tax.py",
                '    """Tax in cents on a net amount in cents: nearest cent, halves up."""\n'
                "    check_rate(rate)\n"
                "    return (net * rate + 50) // 100",
                '    """Tax in cents on a net amount in cents: nearest cent, halves away from zero."""\n'
                "    check_rate(rate)\n"
                "    return round_div(net * rate, 100)",
            ),
            _edit(
                "till/tax.py",
                "\nREDUCED = 5\n",
                "\nfrom .money import round_div\n\nREDUCED = 5\n",
            ),
        ),
    ),
    Agent(
        "till/tax.py is edited in both places: `return round_div(net * rate, 100)`, and the import above. "
        "Now the forecast: I close data/march again, last line, and expect 0.22.",
        (_sh(f"{commands.CLOSE} | tail -n 1", "10 of 26 days are off, 0.22 in all"),),
    ),
    Agent(
        "0.22 in all, to the cent, and 10 of 26 days: one day fewer, the 19th (inferred; the table left it "
        "no rest). Now the same for till/discount.py: line 19 through `round_div`, and its import. I expect "
        "the last 22 cents to go.",
        (
            _edit(
                "till/discount.py",
                '    """The list price in cents after a discount, to the nearest cent."""\n'
                "    if not 0 <= percent <= 100:\n"
                '        raise ValueError(f"a discount of {percent} per cent")\n'
                "    return (listed * (100 - percent) + 50) // 100",
                '    """The list price in cents after a discount: nearest cent, halves away from zero."""\n'
                "    if not 0 <= percent <= 100:\n"
                '        raise ValueError(f"a discount of {percent} per cent")\n'
                "    return round_div(listed * (100 - percent), 100)",
            ),
            _edit(
                "till/discount.py",
                "from pathlib import Path\n",
                "from pathlib import Path\n\nfrom .money import round_div\n",
            ),
        ),
    ),
    Agent(
        "`return round_div(listed * (100 - percent), 100)`, with its import, stands in till/discount.py. I "
        "run `python check.py`, where I expect all 25 green, and beside it the whole close of data/march, "
        "because one last line could hide a plus and a minus; I expect 0.00 on every day.",
        (
            _sh("python check.py", "25 tests, 0 failed"),
            _sh(
                commands.CLOSE,
                "2026-03-14     1038.63   1038.63        0.00",
                "2026-03-16       49.71     49.71        0.00",
                "0 of 26 days are off, 0.00 in all",
            ),
        ),
    ),
    Agent(
        "Measured: 25 tests, 0 failed; 0 of 26 days are off, and no plus hides a minus. The 14th, my odd "
        "one, is at 1038.63 on both sides. One more edit: README.md gets the rule, because a `// 100` is "
        "quickly typed again and the next hand can't know why it must not be; I expect it to fit under "
        "“Rules of money”.",
        (
            _edit(
                "README.md",
                "- A day is closed when",
                "- A refund is its sale with the sign turned: round with `round_div`, never by `// 100`.\n"
                f"  `sh {commands.RECIPE} data/march` lists the refunds where the difference would show.\n"
                "- A day is closed when",
            ),
        ),
    ),
    Agent(
        "README.md now has it: “round with `round_div`, never by `// 100`”. March is closed and this is a "
        "good place to stop and take stock, so I write a checkpoint; what I measured along the way stands "
        "above in my own words, the notebook entry holds what I'd otherwise get wrong.",
        (
            Call(
                HANDOFF,
                commands.DRAFT,
                (
                    "checkpoint refused: this would be lost or stand unproven.",
                    "“1” stands in no result of that (",
                    f"): “{commands.CLAIM}”",
                    "a command that is saved in no file",
                ),
                fails=True,
            ),
        ),
    ),
    Agent(
        "Handed back, and in one point rightly: “for 1 to 1000 cents” is what I wrote into the test, no result shows "
        "it. What was measured is that tests/test_mirror.py passes, 25 tests, 0 failed, so I claim that. The commands "
        "on the list I let go on purpose: two wrong tries, a profile, and a third try whose useful half is in "
        "recipes/half_cents.sh. I call micro_handoff again; I expect it to be stored.",
        (Call(HANDOFF, commands.DOCUMENT, ("checkpoint stored",)),),
    ),
    Agent(
        "March closes. A refund was rounded the other way than its sale, in two places: the tax, and the "
        "discount before it. Both now use the one rounding that treats minus like plus, a test holds them to "
        "it, and the README says why. Your hint about the bread was the turning point; I was busy suspecting "
        "a float.",
    ),
    Human("Lovely, thank you. Does it hold for February, too? Nobody ever looked."),
    Agent(
        "It was next on my list. I close data/february with the code as it is now, the last line only; if "
        "the fault is what I say it is, I expect 0.00 there as well, although I never looked at that month "
        "while mending.",
        (_sh("python -m till close data/february | tail -n 1", "0 of 24 days are off, 0.00 in all"),),
    ),
    Agent(
        "0 of 24 days are off, 0.00 in all: it holds for a month that the fix has never seen. The recipe "
        "from before is on disk, so I run it too, `sh recipes/half_cents.sh data/february`, to see whether "
        "February could have shown the fault at all; I expect some half cents there.",
        (_sh(f"sh {commands.RECIPE} data/february", "22 of 143 refunds"),),
    ),
    Agent(
        "22 of 143 refunds fall on half a cent, so the zero means something. What February was before the "
        "fix I can't read off the new code, so I work it out: `python -c` with the old formula against the "
        "new one on every line of data/february/receipts.csv. I expect a few days with cents, all above "
        "zero.",
        (_sh(commands.BEFORE_FIX, "9 days were off, 37 cents in all"),),
        thinks="The old code is gone from the files, but its formula is short and stands above. Use that.",
    ),
    Agent(
        "So February had the same fault: 9 days were off, 37 cents in all, every one of them in the till's "
        "favour. With the fix both months stand at 0.00, measured. I'd infer that earlier months have it "
        "too; their exports aren't here."
    ),
    Human(
        "Then one last thing, for the accountant: where exactly was the fault, file and line, and how many "
        "of March's refunds had it hit?"
    ),
    Agent(
        "From what I said while I looked, since the calls behind it have left my context: the tax in "
        "till/tax.py:41, and the discount before it in till/discount.py:19, `+ 50) // 100` in both. 42 of 162 "
        "refunds didn't undo their sale, 51 cents in all; measured then, over every pair of March."
    ),
    Human("She would like to see them one by one. Can you get me that list, as it was?"),
    Agent(
        "I saw it once and can't say it again; the record can. I recall the call by its words, `refunds do not undo "
        "their sale`, because its address is gone with it; I expect one call.",
        (Call(RECALL, {"what": "refunds do not undo their sale"}, ("calls with these words",)),),
    ),
    Agent(
        "One call, the `python -c` over all pairs, with its address. I recall it by that; I expect 42 lines, and the "
        "count behind them.",
        (Call(RECALL, lambda asked: {"what": _address(asked)}, ("The result, exactly as it was:",), returns="pairs"),),
    ),
    Agent(
        "There it is, down to “42 of 162 refunds do not undo their sale, 51 cents left”. I write its lines to "
        f"{LIST}, because the accountant wants a file; I expect 42.",
        (
            Call(
                "write", lambda asked: {"file_path": LIST, "content": _lines(asked)}, (f"{LIST} made, 42 lines added",)
            ),
        ),
    ),
    Agent(
        f"{LIST} has them, 42 lines, each a refund with its sale, day and café. Nothing was worked out anew: it is the "
        "result of that day's call, and the code that made it is mended."
    ),
)


def _address(asked: Asked) -> str:
    """The address of the one call that recall listed."""
    listed = asked.results[-1].result or ""
    return next(iter(re.findall(r"\b[0-9a-f]{16}\b", listed)), "none was listed")


def _lines(asked: Asked) -> str:
    """The refunds in the result that recall brought back."""
    found = re.findall(r"^2026-03-.*$", asked.results[-1].result or "", re.M)
    return "".join(f"{line}\n" for line in found)
