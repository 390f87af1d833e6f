"""`refract` commands, each in a process of its own, forked from one that has loaded the program.

Loading it takes most of the CPU time of a short command, and tests run hundreds of them. What a
command loads, and that it starts at all, is tested by `tests/cli/test_imports.py` and by everything
that serves.
"""

import multiprocessing
import os
import signal
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
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    warnings.simplefilter("default")
    sys.argv = ["refract", *words]
    from refract.cli import main  # noqa: PLC0415 - loaded by the parent

    main()


def get_fork_context() -> ForkServerContext:
    """Return what starts processes that have loaded the program."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LOADED))
    return context


class ForkedCommand:
    """A command that runs, with the methods of `subprocess.Popen` that tests use."""

    def __init__(
        self, words: list[str], environment: Mapping[str, str], output: str, errors: str
    ) -> None:
        self._words = words
        self._process = get_fork_context().Process(
            target=_run, args=(words, dict(environment), output, errors)
        )
        self._process.start()
        self.pid = self._process.pid or 0

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(self._words, timeout or 0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_command(
    *words: str, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, like `subprocess.run(…, capture_output=True, text=True)`."""
    with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
        command = ForkedCommand(list(words), environment, output.name, errors.name)
        try:
            code = command.wait(timeout)
        except subprocess.TimeoutExpired:
            command.kill()
            command.wait()
            raise
        told, complained = output.read().decode(), errors.read().decode()
        return subprocess.CompletedProcess(list(words), code, told, complained)
