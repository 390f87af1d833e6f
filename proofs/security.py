"""The security bars S1 to S9: how many hostile cases each holds against."""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from proofs._tests import ROOT, outcome_of
from proofs.harness.report import Report

COUNTED = "hostile cases"
"""A test that tries many cases says so with `record_property(COUNTED, number)`.

Any other counts as one.
"""


SEALED = "core/net/test_sealed.py::test_inside_a_sealed_network[test_{}.py]"


class Bar(NamedTuple):
    """What is tried, and by which files or single tests."""

    tried: str
    files: tuple[str, ...]


BARS = {
    "S1": Bar(
        "every route as every identity, foreign objects, forged forms",
        ("access/test_*.py", "web/test_csrf.py"),
    ),
    "S2": Bar(
        "addresses that are not public, spelled, resolved or redirected to",
        ("core/net/test_guard.py", "core/net/test_addresses.py", SEALED.format("ssrf")),
    ),
    "S3": Bar(
        "destinations that are not what they seem",
        ("core/test_urls.py", "links/test_golinks.py", "redirect/test_responses.py"),
    ),
    "S4": Bar(
        "scripts, formulas and headers in what people write",
        ("library/test_hostile.py", "lists/test_appearance.py", "browser/test_hostile.py"),
    ),
    "S5": Bar(
        "tokens and claims that are forged",
        ("identity/test_tokens.py", "identity/test_id_tokens.py", "identity/test_claims.py"),
    ),
    "S6": Bar(
        "canaries searched in database, spool and logs",
        (
            "flows/test_privacy.py",
            "identity/test_revocation.py",
            "identity/test_erasure.py",
            "core/test_log.py",
        ),
    ),
    "S7": Bar("response classes and their headers", ("web/test_headers.py",)),
    "S8": Bar(
        "reserved and confusable names", ("names/test_grammar.py", "names/test_similarity.py")
    ),
    "S9": Bar(
        "bodies, depths and bombs",
        (
            "web/test_bad_input.py",
            "core/net/test_response_body.py",
            "core/net/test_html_head.py",
            SEALED.format("hostile_servers"),
        ),
    ),
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make proof security", description=__doc__)
    parser.add_argument(
        "--only",
        choices=sorted(BARS),
        nargs="*",
        default=sorted(BARS),
        help="Left out: all of them.",
    )
    parser.add_argument("--seed", type=int, help="Left out: a random one, printed.")
    parser.add_argument(
        "--save",
        action="store_true",
        help="Write the figures to proofs/results, a file for each bar.",
    )
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    held = True
    for number in given.only:
        report = Report(f"{number}: {BARS[number].tried}", seed)
        _judge(report, _run(BARS[number], seed))
        held = report.show() and held
        if given.save:
            report.save(f"security-bar-{number.removeprefix('S')}")
    return 0 if held else 1


def _run(bar: Bar, seed: int) -> list[ET.Element]:
    single = [f"tests/{name}" for name in bar.files if "::" in name]
    patterns = [name for name in bar.files if "::" not in name]
    files = single + sorted(
        {
            str(path.relative_to(ROOT))
            for pattern in patterns
            for path in (ROOT / "tests").glob(pattern)
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.xml"
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junit-xml={record}",
            f"--hypothesis-seed={seed}",
        ]
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, *files],
            env=os.environ,
            cwd=ROOT,
            check=False,
        )
        # It was written by pytest just now.
        return list(ET.parse(record).iter("testcase")) if record.exists() else []  # noqa: S314


def _judge(report: Report, cases: list[ET.Element]) -> None:
    outcomes = Counter(map(outcome_of, cases))
    tried = sum(_cases(case) for case in cases if outcome_of(case) == "passed")
    report.bar(f"{COUNTED} tried in vain", tried, "> 0", held=tried > 0)
    report.none("that did harm, or were not tried", outcomes["failed"] + outcomes["skipped"])


def _cases(case: ET.Element) -> int:
    told = [
        int(found.get("value", "0"))
        for found in case.iter("property")
        if found.get("name") == COUNTED
    ]
    return sum(told) or 1
