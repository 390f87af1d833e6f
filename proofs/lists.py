"""Lists at full size: a model of drafts, editions and claims against the databases, and many hands on one slug and one order.

The same tests that are part of `make test`, with more examples, longer runs and more publishers, each with connections of its own.
hypothesis and the races print their seeds.
"""

import argparse
import os
import subprocess
import sys

TESTS = ["tests/lists/test_machine.py", "tests/lists/test_races.py"]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make proof lists", description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=200, help="runs of the model on each database")
    parser.add_argument("--steps", type=int, default=50, help="steps of a run")
    parser.add_argument("--publishers", type=int, default=50, help="who publish under the same slug at the same moment")
    parser.add_argument("--rounds", type=int, default=20, help="slugs that they all want, one after the other")
    parser.add_argument("--reorders", type=int, default=100, help="changes that each of eight clients makes to one list")
    parser.add_argument("--seed", type=int, default=None, help="repeat the model's runs with this seed")
    given = parser.parse_args(arguments)
    sizes = {
        "REFRACT_TEST_EXAMPLES": given.examples,
        "REFRACT_TEST_STEPS": given.steps,
        "REFRACT_TEST_CLAIMERS": given.publishers,
        "REFRACT_TEST_ROUNDS": given.rounds,
        "REFRACT_TEST_REORDERS": given.reorders,
    }
    seed = [] if given.seed is None else [f"--hypothesis-seed={given.seed}"]
    words = [sys.executable, "-m", "pytest", "-q", "-s", "--hypothesis-show-statistics", *seed, *TESTS]
    return subprocess.run(words, env=os.environ | {name: str(size) for name, size in sizes.items()}, check=False).returncode
