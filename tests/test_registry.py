"""The registry is complete: the source has no job, hook or singleton that it does not list."""

import ast
from collections.abc import Iterator
from pathlib import Path

import refract
from refract.app import WebNode
from refract.registry import build_page_hooks, list_jobs, list_singletons
from tests.client import on_sqlite

SOURCE = Path(refract.__file__).parent


def _iter_nodes() -> Iterator[ast.AST]:
    for path in SOURCE.rglob("*.py"):
        yield from ast.walk(ast.parse(path.read_text()))


def _is_singleton(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "singleton"
    )


def _list_targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [
        element
        for target in targets
        for element in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]


def test_every_singleton_is_listed() -> None:
    calls = [node for node in _iter_nodes() if isinstance(node, ast.Call) and _is_singleton(node)]
    used = {ast.unparse(call.args[0]).rpartition(".")[2] for call in calls}
    assert sorted(made.__name__ for made in list_singletons()) == sorted(used)


def test_no_attribute_of_a_singleton_is_assigned() -> None:
    assignments = (node for node in _iter_nodes() if isinstance(node, ast.Assign | ast.AnnAssign))
    targets = [target for node in assignments for target in _list_targets(node)]
    attributes = [target for target in targets if isinstance(target, ast.Attribute)]
    assert not [ast.unparse(found) for found in attributes if _is_singleton(found.value)]


def test_every_handler_is_listed() -> None:
    functions = (node for node in _iter_nodes() if isinstance(node, ast.AsyncFunctionDef))
    marked = [
        function.name
        for function in functions
        if any(ast.unparse(mark).startswith("handles(") for mark in function.decorator_list)
    ]
    handlers, periodic = list_jobs()
    assert sorted(handler.__name__ for handler in handlers) == sorted(marked)
    assert len({job.name for job in periodic}) == len(periodic)


@on_sqlite
async def test_the_app_has_every_hook(app: WebNode) -> None:
    hooks = build_page_hooks()
    assert {name: getattr(app.api.state, name) for name in hooks} == hooks
