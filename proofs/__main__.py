"""`python -m proofs` lists the proofs; `python -m proofs NAME …` runs one."""

import sys

import proofs
from tools import catalogue


def main(arguments: list[str]) -> int:
    if arguments:
        return catalogue.run(proofs, arguments[0], arguments[1:])
    print("Proofs (make proof NAME):")
    catalogue.show(proofs)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
