"""100 domains with the same 10,000 names on each: every address leads to its own destination, and a
change on one domain touches no other.

Two processes on three databases, and on SQLite with Redis. Random addresses are followed, cold and
cached; then links are disabled, names released and given to other links, and after each change the
name is followed on every domain.
"""

from proofs._tests import Size, run_tests

FILES = ["domains/test_many_domains.py"]


def main(arguments: list[str]) -> int:
    sizes = {
        "domains": Size(100, "domains, the default one included"),
        "names": Size(10_000, "names on each"),
        "asked": Size(100_000, "addresses that each process follows"),
        "changes": Size(200, "changes"),
    }
    return run_tests("domains", __doc__, arguments, FILES, [], **sizes)
