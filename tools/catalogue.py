"""Runnable modules of a folder: list them, run one, run all.

Behind `make proof` and `make bench`.
"""

import ast
import importlib
import pkgutil
import signal
import sys
from types import FrameType, ModuleType


def entries(folder: ModuleType) -> dict[str, str]:
    """Each public module with the first line of its docstring, read without importing it.

    Some are heavy. `a_b.py` is called a-b.
    """
    found = {}
    for module in pkgutil.iter_modules(folder.__path__):
        if module.name.startswith("_") or module.ispkg:
            continue
        spec = module.module_finder.find_spec(module.name, None)
        source = (
            spec.loader.get_source(module.name)
            if spec and spec.loader and hasattr(spec.loader, "get_source")
            else None
        )
        docstring = ast.get_docstring(ast.parse(source or "")) or "(no description)"
        found[module.name.replace("_", "-")] = docstring.splitlines()[0]
    return found


def show(folder: ModuleType) -> None:
    found = entries(folder)
    width = max((len(name) for name in found), default=0)
    for name, line in found.items():
        print(f"  {name:{width}}  {line}")
    if not found:
        print("  (none yet)")


def run(folder: ModuleType, name: str, arguments: list[str]) -> int:
    """0 when it held, as a process's exit code; 2 when there is no such thing.

    Broken off, it still stops what it started.
    """
    name = name.replace("_", "-")
    if name not in entries(folder):
        print(f"There is no {name} in {folder.__name__}/. There are:")
        show(folder)
        return 2
    module = importlib.import_module(f"{folder.__name__}.{name.replace('-', '_')}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    return int(module.main(arguments))


def _leave(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
