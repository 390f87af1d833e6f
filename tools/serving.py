"""A real Refract in a process of its own, for proofs, benches and tests."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

GREETING = "Refract is running at "
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Served:
    """A running server: its address, its data directory and its process."""

    url: str
    data_dir: Path
    process: "subprocess.Popen[str]"


class DidNotStart(Exception):
    """The server ended before it said where it is; the message is what it said instead."""


def command(*words: str) -> list[str]:
    """The command line of this very source tree, whether or not it is installed."""
    return [sys.executable, "-m", "refract", *words]


def environment(source: Path | str = ROOT / "src", **settings: object) -> dict[str, str]:
    """This process's environment without its settings, and with those given.

    `environment(workers=2)`. `source` has the package.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REFRACT_")}
    path = os.pathsep.join([str(source), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {
        "PYTHONPATH": path,
        "REFRACT_SPOOL_READER": "elsewhere",
    }  # a redirect node may be measured alone
    return {
        **kept,
        **own,
        **{f"REFRACT_{name.upper()}": str(value) for name, value in settings.items()},
    }


@contextmanager
def serving(
    data_dir: Path, source: Path | str = ROOT / "src", **settings: object
) -> Iterator[Served]:
    """Serve on a free port of this machine for as long as the block runs.

    `source` has the package, maybe of another version. Settings are named as in `Settings`.

    A process that only redirects may do so alone here: whoever starts it this way looks at its
    spool itself.
    """
    settings = {"spool_reader": "elsewhere", **settings}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command("serve", "--port", "0", "--data-dir", str(data_dir)),
            env=environment(source, **settings),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith(GREETING):
                process.wait(10)
                errors.seek(0)
                raise DidNotStart(line + errors.read())
            yield Served(line.removeprefix(GREETING).strip(), data_dir, process)
        finally:
            process.terminate()
            process.wait(20)
            if process.stdout:
                process.stdout.close()
