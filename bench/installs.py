"""Ways to start Refract on a fresh machine: seconds to the first redirect, disk and memory.

    python -m bench installs [--only WAY] [--base DIR]

Each way begins on its own copy of a minimal Debian with what the way itself asks for, and ends with
a redirect of a link that was just created. The clock runs from its first command, so downloads of
packages count, from whatever registry this machine has. Needs root. Memory is the proportional set
size of all processes, two seconds after the redirect.
"""

import argparse
import http.client
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench._common import busy, table, tree, write
from tools import image
from tools.debian_root import (
    copy_root,
    create_root,
    measure_disk,
    run_in_root,
    start_in_root,
)
from tools.release import artifacts
from tools.release.__main__ import build
from tools.servers import free_port

PATIENCE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Way:
    """A way to start: what it needs on the machine, what is handed over, and what is typed."""

    packages: tuple[str, ...]
    prepare: Callable[[Path, Path], None]
    install: str
    command: str
    """How `refract` is called afterwards."""
    serve: str


def _copy_checkout(root: Path, _release: Path) -> None:
    artifacts.export_tree("HEAD", root / "srv/refract")


def _copy_file(pattern: str) -> Callable[[Path, Path], None]:
    def copy(root: Path, release: Path) -> None:
        (file,) = release.glob(pattern)
        shutil.copyfile(file, root / "srv" / file.name)

    return copy


WAYS = {
    "make run": Way(
        ("python3", "python3-venv", "make"),
        _copy_checkout,
        "true",
        "cd /srv/refract && .venv/bin/refract",
        'cd /srv/refract && exec make run ARGS="--port $PORT"',
    ),
    "wheel, as pipx installs it": Way(
        ("python3", "python3-venv"),
        _copy_file("refract_links-*-cp3*.whl"),
        "python3 -m venv /opt/refract && /opt/refract/bin/pip install --quiet /srv/*.whl",
        "/opt/refract/bin/refract",
        "exec /opt/refract/bin/refract serve --port $PORT",
    ),
    "pure wheel": Way(
        ("python3", "python3-venv"),
        _copy_file("refract_links-*-none-any.whl"),
        "python3 -m venv /opt/refract && /opt/refract/bin/pip install --quiet /srv/*.whl",
        "/opt/refract/bin/refract",
        "exec /opt/refract/bin/refract serve --port $PORT",
    ),
    "single file": Way(
        ("python3",),
        _copy_file("refract-*.pyz"),
        "chmod +x /srv/refract-*.pyz",
        "/srv/refract-*.pyz",
        "exec /srv/refract-*.pyz serve --port $PORT --workers 2",
    ),
    "Debian package": Way(
        ("python3",),
        _copy_file("refract_*.deb"),
        "dpkg --install /srv/refract_*.deb",
        "refract",
        "exec refract serve --port $PORT",
    ),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What one way took."""

    seconds: float
    of_them_starting: float
    disk_mb: float
    memory_mb: float


def measure_way(way: Way, base: Path, release: Path, work: Path) -> Measured:
    """Install and start in a copy of the base, and redirect a first link."""
    root = copy_root(
        create_root(base.with_name("-".join((base.name, *way.packages))), *way.packages), work
    )
    before = measure_disk(root)
    way.prepare(root, release)
    output = work.with_suffix(".log")
    port, data = free_port(), "/srv/data"
    variables = {"PORT": str(port), "REFRACT_DATA_DIR": data}
    began = time.monotonic()
    run_in_root(root, way.install, output, **variables)
    installed = time.monotonic()
    with start_in_root(root, way.serve, output, **variables) as process:
        try:
            wait_until_served(port, process, output)
            first = f"{way.command} shorten https://example.com/ --name first"
            run_in_root(root, first, output, **variables)
            follow_first_link(port)
            finished = time.monotonic()
            time.sleep(2)
            memory = measure_memory(process.pid)
        finally:
            process.kill()
    shutil.rmtree(root / data[1:])
    return Measured(
        seconds=finished - began,
        of_them_starting=finished - installed,
        disk_mb=measure_disk(root) - before,
        memory_mb=memory,
    )


def measure_container(base: Path, work: Path) -> Measured:
    """Build the image, start a container of it, and redirect a first link."""
    built = image.build_image(base.with_name(f"{base.name}-image"), work)
    began = time.monotonic()
    with image.run_container(built, work / "data") as container:
        container.refract("shorten", "https://example.com/", "--name", "first")
        follow_first_link(container.port)
        finished = time.monotonic()
        time.sleep(2)
        memory = measure_memory(container.pid)
    return Measured(
        seconds=finished - began,
        of_them_starting=finished - began,
        disk_mb=built.refract_mb,
        memory_mb=memory,
    )


def wait_until_served(port: int, process: "subprocess.Popen[bytes]", output: Path) -> None:
    """Wait until the server is ready."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"The server has ended:\n{output.read_text()[-3000:]}")
        try:
            if _get(port, "/ready") == http.client.OK:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise SystemExit(f"not ready after {PATIENCE_SECONDS:.0f} s:\n{output.read_text()[-3000:]}")


def follow_first_link(port: int) -> None:
    """Raise unless the first link redirects."""
    status = _get(port, "/first")
    if status != http.client.FOUND:
        raise SystemExit(f"/first was answered with {status} instead of a redirect")


def _get(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def measure_memory(pid: int) -> float:
    """Return the proportional set size of a process and all below it, in MB."""
    kilobytes = 0
    for one in tree(pid):
        for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                kilobytes += int(line.split()[1])
    return kilobytes * 1024 / 1e6


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="bench installs", description=(__doc__ or "").splitlines()[0]
    )
    names = [*WAYS, "container"]
    parser.add_argument("--only", action="append", choices=names, help="a way; may be repeated")
    parser.add_argument("--base", type=Path, help="where minimal systems are kept for another run")
    options = parser.parse_args(arguments)
    load_before = busy()
    chosen = options.only or names
    found: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory(prefix="refract-installs-", dir="/var/tmp") as directory:
        work = Path(directory)
        base = options.base or work / "base"
        base.parent.mkdir(parents=True, exist_ok=True)
        release = work / "release"
        release.mkdir()
        parts = tuple(
            part
            for part, way in (("pyz", "single file"), ("deb", "Debian package"))
            if way in chosen
        )
        build("HEAD", parts, "Unreleased", release)
        for number, name in enumerate(chosen):
            print(f"{name} …", file=sys.stderr, flush=True)
            place = work / f"way-{number}"
            found[name] = (
                measure_way(WAYS[name], base, release, place)
                if name in WAYS
                else measure_container(base, place)
            )
            shutil.rmtree(place, ignore_errors=True)
    table(
        [
            "way to start",
            "seconds to first redirect",
            "of them starting",
            "MB on disk",
            "MB in memory",
        ],
        [
            [
                name,
                f"{one.seconds:.1f}",
                f"{one.of_them_starting:.1f}",
                f"{one.disk_mb:.0f}",
                f"{one.memory_mb:.0f}",
            ]
            for name, one in found.items()
        ],
    )
    write(
        "installs",
        "ways to start on a fresh machine",
        load_before,
        options={"only": options.only},
        ways={
            name: {
                "seconds_to_first_redirect": round(one.seconds, 1),
                "of_them_starting": round(one.of_them_starting, 1),
                "MB_on_disk": round(one.disk_mb),
                "MB_in_memory": round(one.memory_mb),
            }
            for name, one in found.items()
        },
    )
    return 0
