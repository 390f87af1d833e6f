"""Proofs that are tests at a larger size."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_tests(name: str, description: str | None, arguments: list[str], patterns: list[str], words: list[str]) -> int:
    """Run the test files that match, with as many examples, steps and rivals as asked for."""
    parser = argparse.ArgumentParser(prog=f"make proof {name}", description=(description or "").splitlines()[0])
    parser.add_argument("--examples", type=int, default=200, help="runs of each model on each database")
    parser.add_argument("--steps", type=int, default=50, help="steps of a run")
    parser.add_argument("--claimers", type=int, default=100, help="who want the same thing at the same moment")
    parser.add_argument("--rounds", type=int, default=20, help="how often they all want something")
    parser.add_argument("--seed", type=int, default=None, help="repeat the models' runs with this seed")
    given = parser.parse_args(arguments)
    files = sorted({str(path.relative_to(ROOT)) for pattern in patterns for path in (ROOT / "tests").glob(pattern)})
    sizes = {f"REFRACT_TEST_{size.upper()}": str(getattr(given, size)) for size in ("examples", "steps", "claimers", "rounds")}
    seed = [] if given.seed is None else [f"--hypothesis-seed={given.seed}"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *seed, *words, *files]
    return subprocess.run(command, env=os.environ | sizes, cwd=ROOT, check=False).returncode
