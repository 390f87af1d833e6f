"""A real `refract serve` for tests: started, watched, and always stopped."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from tests.commands import ForkedCommand, run_command
from tests.waiting import PATIENCE
from tools.servers import free_port

ROOT = Path(__file__).parents[1]


def refract(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return run_command(*arguments, environment=_environment(environment), timeout=2 * PATIENCE)


def _environment(extra: dict[str, str]) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("REFRACT_")}
    return plain | {"PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "default"} | extra


class Served:
    """A running server and what it has said."""

    def __init__(
        self, process: "subprocess.Popen[bytes] | ForkedCommand", port: int, output: Path
    ) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._output = output

    @property
    def output(self) -> str:
        return self._output.read_text()

    @property
    def signin_link(self) -> str:
        found = re.search(r"Sign in \(one-time link\): (\S+)", self.output)
        assert found, self.output
        return found[1]

    @property
    def children(self) -> list[int]:
        """The serving processes that are alive."""
        return self._find_children("refract: serving")

    @property
    def redirecting(self) -> int | None:
        """The process that only redirects, if it has started."""
        found = self._find_children("refract: redirecting")
        return found[0] if found else None

    def _find_children(self, title: str) -> list[int]:
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(
                psutil.NoSuchProcess
            ):  # gone between being listed and being asked, or not yet buried
                if title in " ".join(child.cmdline()):
                    found.append(child.pid)
        return found

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.output
            try:
                if '"starting"' not in httpx.get(f"{self.url}/ready", timeout=5).text:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise AssertionError(f"not serving after {PATIENCE} s:\n{self.output}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(PATIENCE)


def _start(
    words: list[str], environment: dict[str, str], output: Path, program: Sequence[str]
) -> "subprocess.Popen[bytes] | ForkedCommand":
    if "REFRACT_BACKGROUND" not in environment:
        output.touch()
        inline = _environment({"REFRACT_BACKGROUND": "inline", **environment})
        return ForkedCommand(words, inline, str(output), str(output))
    with output.open("a") as sink:
        return subprocess.Popen(
            [*program, *words],
            stdout=sink,
            stderr=sink,
            env=_environment(environment),
            cwd=ROOT,
        )


@contextmanager
def serving(
    data_dir: Path,
    *arguments: str,
    port: int | None = None,
    program: Sequence[str] = (sys.executable, "-m", "refract"),
    **environment: str,
) -> Iterator[Served]:
    """Start a server on a free port; whatever happens in the block, nothing of it is left
    afterwards.

    It is one process, forked from one that has loaded the program, which takes a quarter of the
    CPU time of the three that are the default: tests of processes set `REFRACT_BACKGROUND`, and
    get those that the command starts, or another `program` that is the command.
    """
    chosen = port or free_port()
    output = data_dir.with_name(f"{data_dir.name}-{chosen}.log")
    words = ["serve", "--port", str(chosen), "--data-dir", str(data_dir), *arguments]
    process = _start(words, environment, output, program)
    family: list[psutil.Process] = []
    try:
        served = Served(process, chosen, output)
        served.wait_until_ready()
        yield served
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended by itself
            family = psutil.Process(process.pid).children(recursive=True)
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for one in family:
            if one.is_running() and one.status() != psutil.STATUS_ZOMBIE:
                one.kill()
