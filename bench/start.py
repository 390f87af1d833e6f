"""P10: from cold to the first redirect, memory when idle, memory per cached link.

    python -m bench start [--rounds N]

The database is there already; every start is a new process. Times are of this machine and its load,
so the same run also times a bare `python -c pass` and, as what any of our kind pays, the import of
the web framework.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench._common import ask, busy, cpu_seconds, memory_mb, metrics, table, write
from bench._links import make_links
from tools.servers import free_port
from tools.serving import command, environment, serving

LINKS = 50_000
MAX_IDLE_MB = {"redirect": 150, "all": 200}
"""Role `all` is three processes: the parent, one that serves, one in the background."""
_SECONDS = ("best_seconds", "median_seconds", "cpu_seconds")


def first_redirect(data: Path, role: str) -> tuple[float, float]:
    """Elapsed seconds, and CPU seconds, which do not depend on other work on the machine."""
    port = free_port()
    began = time.perf_counter()
    process = subprocess.Popen(
        command("serve", "--port", str(port), "--data-dir", str(data), "--role", role),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while process.poll() is None:
            try:
                if ask(f"http://127.0.0.1:{port}", ["/s1"]):
                    return time.perf_counter() - began, cpu_seconds(process.pid)
            except OSError:
                time.sleep(0.005)
        raise SystemExit("it did not start")
    finally:
        process.terminate()
        process.wait()


def seconds_of(*words: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True)
    return time.perf_counter() - began


def memory(data: Path, role: str) -> dict[str, float]:
    with serving(data, role=role, cached_links=LINKS) as served:
        ask(served.url, ["/s0"])
        time.sleep(1)
        idle = memory_mb(served.process.pid)
        ask(served.url, ("/s0" for _ in range(LINKS)))
        time.sleep(3)
        before = memory_mb(
            served.process.pid
        )  # storing so many clicks needs memory too, which is not the links'
        ask(served.url, (f"/s{number}" for number in range(LINKS)))
        full = memory_mb(served.process.pid)
        kept = metrics(served.url)["refract_cached_links"]
    return {
        "idle_mb": idle,
        "busy_mb": before,
        "full_mb": full,
        "cached_links": kept,
        "bytes_per_link": (full - before) * 1e6 / kept,
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="bench start", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    load_before = busy()
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="refract-bench-") as directory:
        for role in ("redirect", "all"):
            data = (
                Path(directory) / role
            )  # its own: the clicks that one leaves in its spool would be the other's work
            make_links(data, LINKS)
            starts = sorted(first_redirect(data, role) for _ in range(options.rounds))
            times = {
                "best_seconds": starts[0][0],
                "median_seconds": starts[len(starts) // 2][0],
                "cpu_seconds": min(cpu for _, cpu in starts),
            }
            found[role] = {**times, **memory(data, role)}
        floor = {
            "python": seconds_of("-c", "pass"),
            "fastapi": seconds_of("-c", "import fastapi, sqlalchemy.ext.asyncio"),
        }
    print()
    table(
        ["", "best s", "median s", "CPU s", "idle MB", "bytes per cached link"],
        [
            [
                role,
                *(f"{one[name]:.2f}" for name in _SECONDS),
                f"{one['idle_mb']:.0f}",
                f"{one['bytes_per_link']:.0f}",
            ]
            for role, one in found.items()
        ],
    )
    print(
        f"python alone {floor['python']:.2f} s; with fastapi and sqlalchemy imported"
        f" {floor['fastapi']:.2f} s"
    )
    print("P10 bar: ≤ 2 s, ≤ 150 MB (role all: 200), ≤ 1 kB (aim 1 s, 100 MB)")
    write("start", "P10", load_before, options=vars(options), roles=found, floor=floor)
    held = (
        row["best_seconds"] <= 2
        and row["idle_mb"] <= MAX_IDLE_MB[role]
        and row["bytes_per_link"] <= 1024
        for role, row in found.items()
    )
    return 0 if all(held) else 1
