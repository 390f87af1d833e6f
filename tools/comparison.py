"""`python -m tools.comparison`: the table of the README that compares Refract with other programs.

`docs/comparison.toml` has the claims. What Refract is said to have or to lack is looked up in the
product: a claim without its proof fails, and so does a lack that has been made good meanwhile.
"""

import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from refract.app import build_sample_api
from refract.core.settings.model import Settings
from tools.docs import EXAMPLE_URL, commands_page

ROOT = Path(__file__).parents[1]
CLAIMS = ROOT / "docs/comparison.toml"
README = ROOT / "README.md"
BEGIN = "<!-- comparison: written by `make docs` from docs/comparison.toml -->"
END = "<!-- end of the comparison -->"
SIGNS = {"yes": "✓", "no": "–", "partly": "partly", "": ""}


class Product(NamedTuple):
    """What can be looked up of the product."""

    operations: frozenset[str]
    fields: frozenset[str]
    commands: frozenset[str]
    settings: frozenset[str]

    def has(self, proof: str) -> bool:
        """Return whether the product has what a proof names. Raises ValueError for other text."""
        kind, _, name = proof.partition(" ")
        match kind:
            case "GET" | "POST" | "PUT" | "PATCH" | "DELETE":
                return proof in self.operations
            case "field":
                return name in self.fields
            case "command":
                return name in self.commands
            case "setting":
                return name in self.settings
            case "file":
                return (ROOT / name).exists()
            case "test":
                return _has_test(name)
        problem = f"not a proof: {proof!r}"
        raise ValueError(problem)


def _has_test(name: str) -> bool:
    path, _, function = name.partition("::")
    pattern = rf"^(async )?def {re.escape(function)}\("
    file = ROOT / path
    return file.is_file() and bool(re.search(pattern, file.read_text("utf-8"), re.MULTILINE))


@cache
def inspect_product() -> Product:
    """Return the operations, fields, commands and settings of this version."""
    api = build_sample_api(EXAMPLE_URL)
    document = api.openapi()
    operations = {
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method in methods
    }
    operations |= {
        f"{method} {getattr(route, 'path', '')}"
        for route in api.routes
        for method in getattr(route, "methods", None) or ()
    }
    fields = {
        f"{schema}.{field}"
        for schema, described in document["components"]["schemas"].items()
        for field in described.get("properties", {})
    }
    commands = re.findall(r"^## (refract [a-z -]+)$", commands_page(), re.MULTILINE)
    return Product(
        frozenset(operations),
        frozenset(fields),
        frozenset(commands),
        frozenset(Settings.model_fields),
    )


def read_claims() -> dict[str, Any]:
    return tomllib.loads(CLAIMS.read_text("utf-8"))


def find_problems(claims: dict[str, Any], product: Product) -> list[str]:
    """Return what is wrong with the claims about Refract: one sentence each."""
    problems = []
    for row in claims["rows"]:
        feature, proofs, lacks = row["feature"], row.get("proof", []), row.get("lacks", [])
        if len(row["others"]) != len(claims["programs"]):
            problems.append(f"{feature}: one cell per program, please")
        if (row["refract"] == "no") != bool(lacks) or bool(lacks) == bool(proofs):
            problems.append(f'{feature}: "no" needs `lacks`, anything else needs `proof`')
        problems += [
            f"{feature}: there is no {proof}" for proof in proofs if not product.has(proof)
        ]
        problems += [f"{feature}: there is {lack} now" for lack in lacks if product.has(lack)]
    return problems


def render_table(claims: dict[str, Any]) -> str:
    """Return the table, and below it what the columns were read from."""
    programs = claims["programs"]
    head = ["", "Refract", *(program["name"] for program in programs)]
    lines = [f"| {' | '.join(head)} |", f"|---|{':-:|' * (len(head) - 1)}"]
    for row in claims["rows"]:
        cells = (SIGNS.get(cell, cell) for cell in (row["refract"], *row["others"]))
        lines.append(f"| {row['feature']} | {' | '.join(cells)} |")
    sources = ", ".join(
        f"[{program['name']}]({program['source']}) {program['version']} ({program['date']})"
        for program in programs
    )
    return "\n".join([*lines, "", f"Read from the source and the documentation of {sources}."])


def update_page(page: str, table: str) -> str:
    """Return the page with the table between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def main() -> int:
    claims = read_claims()
    problems = find_problems(claims, inspect_product())
    if problems:
        print(*problems, sep="\n", file=sys.stderr)
        return 1
    page = README.read_text("utf-8")
    README.write_text(update_page(page, render_table(claims)), "utf-8")
    claimed = sum(len(row.get("proof", [])) + len(row.get("lacks", [])) for row in claims["rows"])
    print(f"README.md: {len(claims['rows'])} rows, {claimed} proofs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
