"""Many clients, one name, one key, one lease, one quota.

Exactly one winner, or exactly the limit, on three databases.
"""

from proofs._tests import CLAIMERS, ROUNDS, run_tests

FILES = [
    "**/test_race*.py",
    "**/test_*_race.py",
    "**/test_quota*.py",
    "jobs/test_processes.py",
    "core/test_worker_ids.py",
    "links/test_api.py",
]


def main(arguments: list[str]) -> int:
    words = [
        "-k",
        (
            "race or claim or once or fifty or parallel or processes or worker_id or winner or"
            " at_the_same"
        ),
    ]
    return run_tests("races", __doc__, arguments, FILES, words, claimers=CLAIMERS, rounds=ROUNDS)
