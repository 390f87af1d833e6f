"""`refract` commands, each in a process of its own, forked from one that has loaded the program.

Loading it takes most of the CPU time of a short command, and tests run hundreds of them. What a
command loads, and that it starts at all, is tested by `tests/cli/test_imports.py` and by everything
that serves.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from multiprocessing.context import ForkServerContext
from pathlib import Path

from refract.cli import links
from refract.cli.commands import COMMAND_TARGETS

ROOT = Path(__file__).parents[1]
LOADED = (
    "pytest",  # the main module of the parent, which every process of `multiprocessing` imports
    __name__,
    "refract.app",
    *(
        f"refract.cli.{target.partition(':')[0]}"
        for target in (COMMAND_TARGETS | links.COMMAND_TARGETS).values()
    ),
)


def _run(words: list[str], environment: dict[str, str], output: str, errors: str) -> None:
    """Run a command in this process as the shell would start it."""
    for path, descriptor in ((output, 1), (errors, 2)):
        file = os.open(path, os.O_WRONLY)
        os.dup2(file, descriptor)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    warnings.simplefilter("default")
    sys.argv = ["refract", *words]
    from refract.cli import main  # noqa: PLC0415 - loaded by the parent

    main()


def _get_context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LOADED))
    return context


def run_command(
    *words: str, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, like `subprocess.run(…, capture_output=True, text=True)`."""
    with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
        process = _get_context().Process(
            target=_run, args=(list(words), dict(environment), output.name, errors.name)
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(words), timeout)
        told, complained = output.read().decode(), errors.read().decode()
        return subprocess.CompletedProcess(list(words), process.exitcode, told, complained)
