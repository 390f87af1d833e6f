"""State machines of every feature against its model, on SQLite and PostgreSQL: no divergence. hypothesis prints the seed."""

from proofs._tests import run_tests


def main(arguments: list[str]) -> int:
    return run_tests("machines", __doc__, arguments, ["**/test_machine*.py", "**/test_*_machine.py"], ["--hypothesis-show-statistics"])
