"""`python -m bench` runs every bench; `python -m bench NAME …` runs one.

`python -m bench --list` says which there are.
"""

import sys

import bench
from tools import catalogue


def main(arguments: list[str]) -> int:
    if arguments == ["--list"]:
        catalogue.show(bench)
        return 0
    if arguments:
        return catalogue.run(bench, arguments[0], arguments[1:])
    worst = 0
    for name, question in catalogue.entries(bench).items():
        print(f"\n== {name}: {question}", flush=True)
        worst = max(worst, catalogue.run(bench, name, []))
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
