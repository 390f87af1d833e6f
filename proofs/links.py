"""Links at full size: models of life cycle, ownership and namespace against the databases, and many
claimers for one name.

Each claimer has connections of its own.
"""

from proofs._tests import CLAIMERS, EXAMPLES, ROUNDS, STEPS, run_tests

FILES = ["names/test_race.py", "links/test_machines.py", "names/test_machine.py"]


def main(arguments: list[str]) -> int:
    sizes = {
        "examples": EXAMPLES._replace(usual=50),
        "steps": STEPS,
        "claimers": CLAIMERS,
        "rounds": ROUNDS,
    }
    return run_tests("links", __doc__, arguments, FILES, ["--hypothesis-show-statistics"], **sizes)
