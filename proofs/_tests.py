"""Proofs that are tests at a larger size.

What hypothesis and the races do in `make test`, with more examples, steps and rivals.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from proofs.harness.report import Report

ROOT = Path(__file__).parents[1]
DATABASE = re.compile(r"\b(sqlite|postgresql|mysql)\b")


class Size(NamedTuple):
    """A number that the tests read from the environment (REFRACT_TEST_…)."""

    usual: int
    meaning: str


EXAMPLES = Size(200, "runs of each model on each database")
STEPS = Size(50, "steps of a run")
CLAIMERS = Size(100, "who want the same thing at the same moment")
ROUNDS = Size(20, "how often they all want something")


def run_tests(
    name: str,
    description: str | None,
    arguments: list[str],
    patterns: list[str],
    words: list[str],
    **sizes: Size,
) -> int:
    """Run the test files that match, at the size asked for, and report how many passed on each
    database.
    """
    parser = argparse.ArgumentParser(
        prog=f"make proof {name}", description=(description or "").splitlines()[0]
    )
    for size, (usual, meaning) in sizes.items():
        parser.add_argument(f"--{size}", type=int, default=usual, help=meaning)
    parser.add_argument("--seed", type=int, help="Left out: a random one, printed.")
    parser.add_argument("--save", action="store_true", help="Write the figures to proofs/results.")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    files = sorted(
        {
            str(path.relative_to(ROOT))
            for pattern in patterns
            for path in (ROOT / "tests").glob(pattern)
        }
    )
    environment = os.environ | {
        f"REFRACT_TEST_{size.upper()}": str(getattr(given, size)) for size in sizes
    }
    environment["REFRACT_TEST_TIMEOUT"] = "0"
    unbounded = [
        "-o",
        "faulthandler_timeout=0",
    ]  # at these sizes one test may take as long as it likes
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.xml"
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            *unbounded,
            f"--junit-xml={record}",
            f"--hypothesis-seed={seed}",
        ]
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *words, *files],
            env=environment,
            cwd=ROOT,
            check=False,
        ).returncode
        report = Report(f"{name}: {(description or '').splitlines()[0].rstrip('.')}", seed)
        for size, (_, meaning) in sizes.items():
            report.say(meaning, getattr(given, size))
        _judge(report, record)
    held = report.show() and ended == 0
    if given.save:
        report.save(name)
    return 0 if held else 1


def _judge(report: Report, record: Path) -> None:
    # It was written by pytest just now.
    cases = list(ET.parse(record).iter("testcase")) if record.exists() else []  # noqa: S314
    outcomes = Counter(map(outcome_of, cases))
    passed = Counter(
        found[0]
        for case in cases
        if outcome_of(case) == "passed" and (found := DATABASE.search(case.get("name", "")))
    )
    report.bar("tests passed", outcomes["passed"], "> 0", held=outcomes["passed"] > 0)
    report.say(
        "of them by database",
        ", ".join(f"{database} {number}" for database, number in sorted(passed.items())),
    )
    report.none("failed", outcomes["failed"])
    report.none("left out", outcomes["skipped"])
    report.say("seconds", f"{sum(float(case.get('time', 0)) for case in cases):.0f}")


def outcome_of(case: ET.Element) -> str:
    children = {child.tag for child in case}
    return (
        "failed"
        if children & {"failure", "error"}
        else "skipped"
        if "skipped" in children
        else "passed"
    )
