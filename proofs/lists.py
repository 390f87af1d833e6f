"""Lists at full size: a model of drafts, editions and claims against the databases, and many hands
on one slug and one order.

Each publisher has connections of its own.
"""

from proofs._tests import CLAIMERS, EXAMPLES, ROUNDS, STEPS, Size, run_tests

FILES = ["lists/test_machine.py", "lists/test_races.py"]


def main(arguments: list[str]) -> int:
    sizes = {
        "examples": EXAMPLES,
        "steps": STEPS,
        "claimers": CLAIMERS._replace(usual=50),
        "rounds": ROUNDS,
    }
    reorders = Size(100, "changes that each of eight clients makes to one list")
    return run_tests(
        "lists",
        __doc__,
        arguments,
        FILES,
        ["-s", "--hypothesis-show-statistics"],
        **sizes,
        reorders=reorders,
    )
