"""Measurements of names and words in the source, as STYLE's table counts them.

`python -m tools.style [--list]`.
"""

import argparse
import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "refract"
MAX_COLUMNS = 100
MIN_MODULE_LINES = 60
MAX_BODY_LINES = 40

# A file with one of these names is a role of its feature and may be as short as it likes.
ROLES = {
    *("__init__", "__main__", "models", "schemas", "errors", "queries", "service", "api", "pages"),
    *("jobs", "dependencies", "payloads", "access", "metrics"),
}

# Words of the old private dialect. None of them belongs in a docstring.
DIALECT = re.compile(
    r"\b(whoever|somebody|nobody|everybody|anybody|whatever|the answer (?:is|are)|goes? along"
    r"|by (?:itself|themselves)|of (?:its|their) own accord|(?:is|are) (?:asked|told)|told apart"
    r"|in one go|for good|ticked|lets? it be|the \w+est first)\b",
    re.IGNORECASE,
)
# Functions that may be longer, and why.
LONG_BODIES = {
    "refract.redirect.protocol._try_respond": "the fast lane: each call more costs every redirect",
}
SUPERLATIVE = re.compile(r"^_*(MOST|LEAST|LONGEST|SHORTEST|LARGEST|SMALLEST|HIGHEST|LOWEST)(_|$)")


class Spot(NamedTuple):
    """A place in the source and the name or text that was found there."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text}"


@dataclass(frozen=True)
class SourceModule:
    """A parsed source file with its dotted name."""

    path: Path
    name: str
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """Return the dotted name of the package that holds this module."""
        return self.name.rpartition(".")[0]


def read_modules(root: Path = SOURCE) -> list[SourceModule]:
    """Parse every module below `root`, migrations' revisions left out."""
    modules = []
    for path in sorted(root.rglob("*.py")):
        if "versions" in path.parts:
            continue
        name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        text = path.read_text()
        modules.append(SourceModule(path, name.removesuffix(".__init__"), text, ast.parse(text)))
    return modules


def find_repeated_classes(modules: list[SourceModule]) -> dict[str, list[Spot]]:
    """Return public class names that are defined in more than one module, with their places."""
    places: dict[str, list[Spot]] = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(Spot(module.path, node.lineno, node.name))
    return {name: spots for name, spots in places.items() if len(spots) > 1}


def find_fragments(modules: list[SourceModule]) -> list[Spot]:
    """Return short modules whose only importer sits in the same package, role files aside."""
    importers = _importers(modules)
    found = []
    for module in modules:
        lines = module.text.count("\n")
        if module.path.stem in ROLES or lines >= MIN_MODULE_LINES:
            continue
        users = importers[module.name]
        if len(users) == 1 and _package_of(next(iter(users)), modules) == module.package:
            found.append(
                Spot(module.path, 1, f"{lines} lines, imported only by {next(iter(users))}")
            )
    return found


def _package_of(name: str, modules: list[SourceModule]) -> str:
    is_package = any(module.name == name and module.path.stem == "__init__" for module in modules)
    return name if is_package else name.rpartition(".")[0]


def _importers(modules: list[SourceModule]) -> dict[str, set[str]]:
    names = {module.name for module in modules}
    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for imported in _imports(module.tree):
            target = imported if imported in names else imported.rpartition(".")[0]
            if target in names and target != module.name:
                importers[target].add(module.name)
    return importers


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith("refract.")
        ):
            yield node.value.partition(":")[0]


def find_long_lines(root: Path = ROOT) -> list[Spot]:
    """Return lines of Python code over the limit, in the source, the tests and the tools."""
    return [
        Spot(path, number, f"{len(line)} columns")
        for folder in ("src", "tests", "tools", "proofs", "bench")
        for path in sorted((root / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > MAX_COLUMNS
    ]


def find_docstrings(modules: list[SourceModule]) -> list[Spot]:
    """Return every docstring with its place."""
    found = []
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    found.append(Spot(module.path, node.body[0].lineno, text))
    return found


def find_dialect(modules: list[SourceModule]) -> list[Spot]:
    """Return the dialect's words in docstrings."""
    return [
        Spot(spot.path, spot.line, hit[0])
        for spot in find_docstrings(modules)
        for hit in DIALECT.finditer(spot.text)
    ]


def find_superlatives(modules: list[SourceModule]) -> list[Spot]:
    """Return limits that are not called MAX_ or MIN_."""
    return [
        Spot(module.path, node.lineno, node.id)
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and SUPERLATIVE.match(node.id)
    ]


def find_caught_names(modules: list[SourceModule]) -> list[Spot]:
    """Return names other than `exc` that an exception is bound to."""
    return [
        Spot(module.path, node.lineno, node.name)
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler) and node.name and node.name != "exc"
    ]


def find_long_functions(modules: list[SourceModule]) -> list[Spot]:
    """Return functions whose body, with its docstring, has too many lines.

    Signatures are left out: options of a command and parameters of a route are declarations.
    """
    return [
        Spot(module.path, node.lineno, f"{node.name}: {lines} lines")
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.body[0].lineno + 1) > MAX_BODY_LINES
        and f"{module.name}.{node.name}" not in LONG_BODIES
    ]


def find_vague_loops(modules: list[SourceModule]) -> list[Spot]:
    """Return loops and comprehensions whose variable says nothing about its element."""
    return [
        Spot(module.path, node.target.lineno, node.target.id)
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension)
        and isinstance(node.target, ast.Name)
        and node.target.id in {"one", "some", "each", "other"}
    ]


def measure() -> dict[str, list[Spot]]:
    """Return every rule that can be counted, with the places that break it."""
    modules = read_modules()
    repeated = find_repeated_classes(modules)
    return {
        "class names defined in several modules": [
            spot for spots in repeated.values() for spot in spots
        ],
        f"modules under {MIN_MODULE_LINES} lines with one importer in their package": (
            find_fragments(modules)
        ),
        f"lines over {MAX_COLUMNS} columns": find_long_lines(),
        "dialect words in docstrings": find_dialect(modules),
        "constants MOST_/LEAST_/LONGEST_ instead of MAX_/MIN_": find_superlatives(modules),
        "exceptions not bound to exc": find_caught_names(modules),
        "loop variables one/some/each/other": find_vague_loops(modules),
        f"functions with more than {MAX_BODY_LINES} lines": find_long_functions(modules),
    }


def main() -> None:
    """Print the table, and with --list every place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print every place, not only counts")
    parser.add_argument("--only", default="", help="only places whose path contains this")
    options = parser.parse_args()
    modules = read_modules()
    docstrings = find_docstrings(modules)
    words = Counter(
        word.lower() for spot in docstrings for word in re.findall(r"[A-Za-z]+", spot.text)
    )
    print(
        f"{len(modules)} modules, {sum(module.text.count(chr(10)) for module in modules):,} lines"
    )
    print(
        f"{sum(words.values()):,} words of docstrings, 'Return(s)'"
        f" {words['return'] + words['returns']} times"
    )
    for rule, spots in measure().items():
        chosen = [spot for spot in spots if options.only in str(spot.path)]
        print(f"{len(chosen):6,}  {rule}")
        if options.list:
            print(*(f"        {spot}" for spot in chosen), sep="\n")


if __name__ == "__main__":
    main()
