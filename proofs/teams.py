"""Teams at full size: a model of members, roles, owners, keys and deletions against the databases,
and changes of teams that race.
"""

from proofs._tests import EXAMPLES, STEPS, run_tests

FILES = ["teams/test_machine.py", "links/test_team_races.py", "identity/test_heirs.py"]


def main(arguments: list[str]) -> int:
    words = ["--hypothesis-show-statistics"]
    return run_tests("teams", __doc__, arguments, FILES, words, examples=EXAMPLES, steps=STEPS)
