"""Links at full size: models of life cycle, ownership and namespace against the databases, and many claimers for one name.

The same tests that are part of `make test`, with more examples, longer runs and more claimers, each claimer with connections of its own.
hypothesis prints the seed and the shortest failing run.
"""

import argparse
import os
import subprocess
import sys

MODELS = ["tests/links/test_machines.py", "tests/names/test_machine.py"]
RACE = ["tests/names/test_race.py"]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make proof links", description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=50, help="runs of each model on each database")
    parser.add_argument("--steps", type=int, default=50, help="steps of a run")
    parser.add_argument("--claimers", type=int, default=100, help="who want the same name at the same moment")
    parser.add_argument("--rounds", type=int, default=20, help="names that they all want, one after the other")
    parser.add_argument("--seed", type=int, default=None, help="repeat the models' runs with this seed")
    given = parser.parse_args(arguments)
    sizes = {
        "REFRACT_TEST_EXAMPLES": given.examples,
        "REFRACT_TEST_STEPS": given.steps,
        "REFRACT_TEST_CLAIMERS": given.claimers,
        "REFRACT_TEST_ROUNDS": given.rounds,
    }
    seed = [] if given.seed is None else [f"--hypothesis-seed={given.seed}"]
    words = [sys.executable, "-m", "pytest", "-q", "--hypothesis-show-statistics", *seed, *RACE, *MODELS]
    return subprocess.run(words, env=os.environ | {name: str(size) for name, size in sizes.items()}, check=False).returncode
