"""State machines of every feature against its model, on SQLite and PostgreSQL: no divergence."""

from proofs._tests import EXAMPLES, STEPS, run_tests

FIGURES = ("clicks/test_figures_add_up.py", "clicks/test_groups.py")


def main(arguments: list[str]) -> int:
    words = ["--hypothesis-show-statistics"]
    return run_tests(
        "machines",
        __doc__,
        arguments,
        ["**/test_machine*.py", "**/test_*_machine.py", *FIGURES],
        words,
        examples=EXAMPLES,
        steps=STEPS,
    )
