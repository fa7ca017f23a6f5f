"""The checkpoint's document: what is taken, what is refused and how, what is handed back once, what the machine adds."""

import json
import subprocess
from pathlib import Path

import pytest

from cutline import checkpoint, mandate, project, risks
from cutline.blocks import Author, Said, ToolCall
from cutline.checkpoint import Document, Stamp

WHOLE = {
    "done": "the race is fixed",
    "open": "nothing",
    "went_wrong": "nothing",
    "working_directory": "/w/crumb",
    "facts": [{"claim": "0 races in 23,400,000 reads", "basis": "measured", "evidence": "go test -race ./..."}],
    "dead_ends": ["a mutex a field: deadlocks"],
    "recipes": ["tools/audit.awk"],
    "next": "tag",
}
LEAST = {"done": "a", "open": "b", "went_wrong": "c"}


def document(**more: object) -> Document:
    read = checkpoint.read({**LEAST, **more})
    assert isinstance(read, Document), read
    return read


class TestADocument:
    @pytest.mark.parametrize(
        "given", [WHOLE, LEAST, {**LEAST, "mood": "good"}], ids=["whole", "least", "unknown member"]
    )
    def test_is_taken(self, given: dict[str, object]):
        read = checkpoint.read(given)
        assert isinstance(read, Document)
        assert read.done == given["done"]

    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ("text", "the arguments are no object"),
            ({}, "done: a text is required"),
            ({**LEAST, "open": ""}, "open: a text is required"),
            ({**LEAST, "went_wrong": None}, "went_wrong: a text is required"),
            ({**LEAST, "done": ["a"]}, "done: a text is required"),
            ({**LEAST, "facts": "many"}, "facts: a list of objects"),
            ({**LEAST, "facts": [{"claim": "x", "basis": "guessed"}]}, "facts[1]"),
            ({**LEAST, "facts": [WHOLE["facts"][0], "y"]}, "facts[2]"),  # type: ignore[index]
            ({**LEAST, "dead_ends": "x"}, "dead_ends: a list of texts"),
            ({**LEAST, "recipes": [1]}, "recipes: a list of texts"),
            ({**LEAST, "next": 3}, "next: a text"),
            ({**LEAST, "done": "x" * 300_000}, "weighs 300"),
        ],
    )
    def test_of_a_wrong_shape_is_refused_with_how_to_mend_it(self, given: object, named: str):
        refused = checkpoint.read(given)
        assert isinstance(refused, str)
        assert refused.startswith(checkpoint.REFUSED) and named in refused and refused.endswith("again.")

    def test_that_is_refused_names_every_fault_at_once(self):
        refused = checkpoint.read({"facts": 1})
        assert isinstance(refused, str)
        assert [name in refused for name in ("done", "open", "went_wrong", "facts")] == [True] * 4


class TestTheReply:
    STAMP = Stamp(1_790_000_000.0, "/w/crumb/sub", "/w/crumb", "main", "3f2c1a9", ("a.py", "b.py"))

    def test_carries_the_machines_stamp(self):
        said = checkpoint.reply(document(), self.STAMP)
        assert said.splitlines() == [
            "checkpoint stored 2026-09-21 14:13:20 UTC",
            "directory /w/crumb/sub, git root /w/crumb, main at 3f2c1a9, 2 dirty: a.py, b.py",
        ]

    def test_flags_what_is_still_unproven(self):
        assert "Stored as unproven:\n- x" in checkpoint.reply(document(), self.STAMP, ["x"])

    def test_hints_at_length_and_at_reasoning_that_outweighs_the_facts(self):
        assert "aim below 800" in checkpoint.reply(document(done="x " * 2_000), self.STAMP)
        assert "More reasoning than facts" in checkpoint.reply(document(done="because " * 200), self.STAMP)

    def test_is_no_refusal(self):
        assert not checkpoint.reply(document(), self.STAMP).startswith(checkpoint.REFUSED)


class TestTheStamp:
    def git(self, folder: Path, *words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words],
            cwd=folder,
            check=True,
            capture_output=True,
        )

    def test_says_what_git_says(self, tmp_path: Path):
        self.git(tmp_path, "init", "-q", "-b", "trunk")
        (tmp_path / "a b.txt").write_text("one")
        (tmp_path / "old").write_text("two\n" * 30)
        self.git(tmp_path, "add", ".")
        self.git(tmp_path, "commit", "-qm", "x")
        self.git(tmp_path, "mv", "old", "new")
        (tmp_path / "a b.txt").write_text("two")
        (tmp_path / "sub").mkdir()
        stamp = project.stamp(tmp_path / "sub")
        assert (stamp.root, stamp.branch) == (str(tmp_path.resolve()), "trunk")
        assert stamp.dirty == ("new", "a b.txt") or stamp.dirty == ("a b.txt", "new")
        assert len(stamp.head) >= 7

    def test_outside_of_a_repository_is_time_and_place(self, tmp_path: Path):
        stamp = project.stamp(tmp_path, at=5.0)
        assert (stamp.at, stamp.directory, stamp.root) == (5.0, str(tmp_path), "")
        assert checkpoint.place(stamp).endswith("no git repository")

    def test_before_the_first_commit_and_with_a_detached_head(self, tmp_path: Path):
        self.git(tmp_path, "init", "-q", "-b", "trunk")
        assert "no commit yet" in checkpoint.place(project.stamp(tmp_path))
        self.git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
        self.git(tmp_path, "checkout", "-q", "--detach")
        assert "detached at" in checkpoint.place(project.stamp(tmp_path))

    def test_a_worktree_belongs_to_its_repositorys_project(self, tmp_path: Path):
        main, tree = tmp_path / "main", tmp_path / "tree"
        main.mkdir()
        self.git(main, "init", "-q", "-b", "trunk")
        self.git(main, "commit", "-q", "--allow-empty", "-m", "x")
        self.git(main, "worktree", "add", "-q", str(tree))
        assert project.project(main) == project.project(tree) == str(main.resolve())
        assert project.project(tmp_path) == str(tmp_path.resolve())


def ran(command: str, result: str, *, name: str = "Bash", address: str = "0" * 16, error: bool = False) -> ToolCall:
    return ToolCall(name, json.dumps({"command": command}).encode(), result, error, 0, address)


class TestRisks:
    """What is handed back once: unproven claims, craft that is saved nowhere, short results that no words carry."""

    RAN = ran("pytest -q tests/test_io.py", "81 passed, 2 failed in 3.21s", address="ab" * 8)

    @pytest.mark.parametrize(
        ("fact", "shown"),
        [
            ({"claim": "two tests fail", "evidence": "pytest -q tests/test_io.py"}, True),
            ({"claim": "two tests fail", "evidence": "ab" * 8}, True),
            ({"claim": "two tests fail", "evidence": "cd" * 8}, False),
            ({"claim": "the run took 3.21s", "evidence": ""}, True),
            ({"claim": "the run took 9.87s", "evidence": ""}, False),
            ({"claim": "all is well", "evidence": "ruff check src"}, False),
        ],
    )
    def test_a_measured_claim_is_held_against_the_record(self, fact: dict[str, str], shown: bool):
        held = document(facts=[{**fact, "basis": "measured"}])
        found = risks.find([self.RAN], [self.RAN], held)
        assert (not found.unproven) is shown

    def test_an_inferred_claim_is_not(self):
        held = document(facts=[{"claim": "the cache is the cause", "basis": "inferred"}])
        assert risks.find([self.RAN], [self.RAN], held).unproven == ()

    CRAFT = (
        "awk -F: '{ if ($3 > 1000) print $1 }' /etc/passwd | sort | uniq -c | sort -rn | head -20 "
        "&& grep -rnoP 'gc\\.mu\\.(R?Lock|R?Unlock)\\(\\)' --include='*.go' . | cut -d: -f1 | uniq -c | sort -rn"
    )

    def test_a_long_command_that_is_saved_nowhere_is_craft_at_risk(self):
        found = risks.find([ran(self.CRAFT, "128 sites")], [], document(done="128 sites"))
        assert len(found.craft) == 1 and "saved in no file" in found.craft[0]

    def test_a_saved_one_is_not(self):
        saved = ToolCall(
            "Write", json.dumps({"file_path": "a.sh", "content": self.CRAFT}).encode(), "ok", False, 1, "1" * 16
        )
        assert risks.find([ran(self.CRAFT, "128 sites"), saved], [], document(done="128 sites")).craft == ()

    def test_one_that_stands_in_the_agents_words_is_not(self):
        told = [ran(self.CRAFT, "128 sites"), Said(f"The audit, 128 sites:\n```\n{self.CRAFT}\n```", Author.AGENT)]
        assert risks.find(told, told, document()).craft == ()

    LOOKING = (
        r"""cd app/src && grep -rn "read_all\|parse_head\|close_file\|\"open\"" --include='*.py' lib 2>&1 | grep -v test """
        r"""| head -30; echo "=== the parser ==="; sed -n '80,92p' lib/parser.py || find lib -name '*.toml' | wc -l"""
    )

    @pytest.mark.parametrize(
        ("command", "craft"),
        [
            (LOOKING, False),
            (LOOKING.replace("head -30", "sort | uniq -c"), True),
            (LOOKING.replace("wc -l", "xargs sed -i s/a/b/"), True),
            (LOOKING.replace("| wc -l", r"-exec sed -i s/a/b/ {} \;"), True),
            (LOOKING + " 'torn | \\", True),
        ],
    )
    def test_what_only_looks_is_no_craft_however_long(self, command: str, craft: bool):
        assert len(command) > 160
        assert bool(risks.find([ran(command, "lib/parser.py:81")], [], document()).craft) == craft

    def test_a_commit_with_a_long_message_is_no_craft(self):
        message = "git add -A && git commit -m 'Mend the reader; it lost rows | see #12; and so on; " + "x" * 200 + "'"
        assert risks.find([ran(message, "done")], [], document()).craft == ()

    def test_claims_that_cant_both_stand_come_with_where_they_were_said(self):
        told = [self.RAN, Said("12 of 40 requests fail.", Author.AGENT)]
        found = risks.find(told, told, document(done="14 of 40 requests fail."))
        assert found.both_ways == (
            f"said both ways: “12 of 40 requests fail” (after {'ab' * 8}), and “14 of 40 requests fail” (in a document)",
        )
        assert found.both_ways[0] in found.lines and found.both_ways == found.standing

    def test_saying_which_one_holds_settles_it(self):
        told = [self.RAN, Said("12 of 40 requests fail.", Author.AGENT)]
        told.append(Said("I misread the log: of the requests 14 fail, not 12.", Author.AGENT))
        assert risks.find(told, told, document(done="14 of 40 requests fail.")).both_ways == ()

    def test_a_pair_of_an_earlier_stretch_was_handed_back_then(self):
        told = [Said("12 of 40 requests fail.", Author.AGENT), Said("14 of 40 requests fail.", Author.AGENT)]
        assert len(risks.find(told, told, document()).both_ways) == 1
        later = [Said("Next.", Author.AGENT)]
        assert risks.find(later, told + later, document()).both_ways == ()

    def test_a_short_result_with_specifics_that_nothing_carries_is_a_hole(self):
        silent = ran("git log -1 --format=%h", "a1b2c3d fix retry_policy.go:213")
        found = risks.find([silent], [silent], document())
        assert len(found.holes) == 1 and "not narrated" in found.holes[0]
        told = [silent, Said("a1b2c3d touched retry_policy.go:213.", Author.AGENT)]
        assert risks.find(told, told, document()).holes == ()

    def test_nothing_at_risk_is_nothing_said(self):
        told = [
            Said("I run tests/test_io.py, because the reader changed and I expect 2 failures.", Author.AGENT),
            self.RAN,
            Said("81 passed, 2 failed in 3.21s.", Author.AGENT),
        ]
        assert risks.find(told, told, document()).lines == ()


def numbered(*runs: tuple[str, str]) -> list[ToolCall]:
    return [ran(command, answer, address=f"{number:016x}") for number, (command, answer) in enumerate(runs)]


class TestCraftReachedByTrying:
    """Versions of one command, one of which failed and a later one worked: the last one that did is shown."""

    SYNTAX = "awk: cmd. line:1: syntax error at or near }"
    TRIES = (
        ("awk -F, '{ sum[$2] += $4 } END { for (k in sum) print k sum[k] ' till.csv", SYNTAX),
        ("awk -F, '{ sum[$2] += $4 } END { for (k in sum) print k sum[k] }' till.csv", "cafe19.5"),
        ("awk -F, '{ sum[$2] += $4 } END { for (k in sum) print k, sum[k] }' till.csv | head -5", "cafe 19.5\nbar 7"),
    )

    def craft(self, calls: list[ToolCall], **more: object) -> tuple[str, ...]:
        return risks.find(calls, calls, document(**more)).craft

    def test_is_found_and_the_last_working_version_shown(self):
        (line,) = self.craft(numbered(*self.TRIES))
        assert line == f"a command that is reached in 3 tries and saved in no file ({2:016x}): {self.TRIES[2][0]}"

    def test_with_other_calls_between_and_a_failing_end(self):
        calls = numbered(self.TRIES[0], ("ls", "till.csv"), *self.TRIES[1:], self.TRIES[0])
        (line,) = self.craft(calls)
        assert self.TRIES[2][0] in line

    def test_comes_before_a_command_that_is_only_long(self):
        found = self.craft([ran(TestRisks.CRAFT, "128 sites"), *numbered(*self.TRIES)])
        assert ["reached in" in line for line in found] == [True, False]

    @pytest.mark.parametrize(
        "saved",
        [
            ("Write", {"file_path": "sum.sh", "content": f"#!/bin/sh\n{TRIES[2][0]}\n"}),
            (
                "Write",
                {"file_path": "sum.sh", "content": TRIES[2][0].replace("till.csv", '"$1"').replace("; ", ";\n  ")},
            ),
            ("Bash", {"command": f"cat > sum.sh <<'EOF'\n{TRIES[2][0]}\nEOF"}),
        ],
        ids=["as it is", "with a parameter", "by a command"],
    )
    def test_that_was_saved_is_none(self, saved: tuple[str, dict[str, str]]):
        kept = ToolCall(saved[0], json.dumps(saved[1]).encode(), "ok", False, 9, "9" * 16)
        assert self.craft([*numbered(*self.TRIES), kept]) == ()

    def test_that_stands_in_the_document_is_none(self):
        fact = {"claim": "cafe 19.5", "basis": "measured", "evidence": self.TRIES[2][0]}
        assert self.craft(numbered(*self.TRIES), facts=[fact]) == ()

    @pytest.mark.parametrize(
        "runs",
        [
            TRIES[1:],
            (TRIES[0], TRIES[0], TRIES[0]),
            (TRIES[0], TRIES[2], TRIES[2]),
            tuple((command, "cafe 19.5") for command, _ in TRIES),
            [
                (f"python -m pytest -q tests/test_till.py -k '{name}' --maxfail=1 -p no:cacheprovider", answer)
                for name, answer in (
                    ("close", "exit code: 1"),
                    ("open", "exit code: 1"),
                    ("tax and not net", "2 passed"),
                )
            ],
            [
                (f"grep -rn '{name}' src/till/close.py src/till/open.py src/till/tax.py", answer)
                for name, answer in (("round_div", "a:1"), ("half_cent", ""), ("discounted", "b:2"))
            ],
            [
                (f"{name} till.csv", answer)
                for name, answer in (("wc -c", ""), ("wc -x", "invalid option"), ("wc -l", "9"))
            ],
        ],
        ids=["two", "none worked", "two versions", "none failed", "tests", "three searches", "short"],
    )
    def test_is_not_seen_in(self, runs: list[tuple[str, str]]):
        assert self.craft(numbered(*runs)) == ()

    def test_is_not_seen_where_a_file_was_edited_between(self):
        edit = ToolCall("Edit", b'{"file_path":"a","old_string":"b","new_string":"c"}', "ok", False, 9, "9" * 16)
        one, two, three = numbered(*self.TRIES)
        assert self.craft([one, edit, two, edit, three]) == ()

    @pytest.mark.parametrize(
        "command", [" | head" * 1_000 + "|", "ls a;" * 1_500 + "|", "cat x " * 1_300, "\ud83d" * 100]
    )
    def test_no_command_is_too_odd(self, command: str):
        found = self.craft(numbered((command, "exit code 1"), (command + "x", ""), (command + "y", "z")))
        assert all(len(line) < 500 for line in found)


class TestTheMandate:
    """1,100 tokens for the schemas and the mandate, by bytes: English prose and JSON took 4.3 bytes a token with the
    o200k vocabulary; the newest models' vocabularies make up to 1.5 times as many."""

    def test_costs_little(self):
        tools = [
            {
                "name": f"mcp__cutline__{tool['name']}",
                "description": tool["description"],
                "input_schema": tool["inputSchema"],
            }
            for tool in mandate.TOOLS
        ]
        weight = len(mandate.MANDATE.encode()) + len(json.dumps(tools, separators=(",", ":")).encode())
        assert weight <= 3_150

    def test_names_its_tools_and_tells_sub_agents_to_keep_off(self):
        names = [tool["name"] for tool in mandate.TOOLS]
        assert names == ["micro_handoff", "recall", "say"]
        assert all(name in mandate.MANDATE for name in names)
        assert "sub-agent" in mandate.TOOLS[0]["description"]

    def test_its_schema_takes_what_the_reader_takes(self):
        from jsonschema import Draft202012Validator

        check = Draft202012Validator(mandate.TOOLS[0]["inputSchema"])
        assert check.is_valid(WHOLE) and check.is_valid(LEAST)
        assert not check.is_valid({**LEAST, "facts": [{"claim": "x", "basis": "guessed"}]})
