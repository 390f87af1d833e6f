"""State machines of every feature against its model, on SQLite and PostgreSQL: no divergence."""

from proofs._tests import EXAMPLES, STEPS, run_tests


def main(arguments: list[str]) -> int:
    words = ["--hypothesis-show-statistics"]
    return run_tests(
        "machines",
        __doc__,
        arguments,
        ["**/test_machine*.py", "**/test_*_machine.py"],
        words,
        examples=EXAMPLES,
        steps=STEPS,
    )
