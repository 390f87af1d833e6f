"""P15: memory, open files and spool of role `all` under mixed load, over time.

    python -m bench soak [--minutes M]

A server on SQLite with everything at its default gets 50 redirects a second on connections that
change, about five requests a second for pages and the API, captures, an import and merges. Memory
is the sum of the proportional set sizes (PSS) of all its processes: a page that two of them share
counts once; the sum of resident sizes is shown beside it. The first third of the time is warm-up;
from then on nothing may grow. Thirty minutes are the full size.
"""

import argparse
import itertools
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench._common import ask, busy, resident_mb, table, tree, write
from bench.beside import WorkClient, import_bookmarks, merge_tags, open_dashboards
from bench.requests import SECRET, SETTINGS, BenchData, prepare
from tools.serving import Served, serving

LINKS = 10_000
MAX_MB = 200.0
MAX_GROWTH = 1.05
"""The last third of the run against the second, for memory and open files."""
SAMPLE_SECONDS = 5.0
REDIRECTS_PER_CONNECTION = 100
REDIRECT_PAUSE = 2.0
"""Seconds between two connections: fifty redirects a second."""


_COLUMNS = ("memory_mb", "resident_mb", "files", "threads", "spool_mb")


@dataclass(frozen=True)
class Sample:
    """The whole server at one moment."""

    minute: float
    memory_mb: float
    resident_mb: float
    files: int
    threads: int
    spool_mb: float
    processes: dict[str, float]


def take_sample(served: Served, began: float) -> Sample:
    pids = sorted(tree(served.process.pid))
    memory = {f"{_name(pid)} {pid}": _read_pss(pid) for pid in pids}
    spool = sum(path.stat().st_size for path in (served.data_dir / "spool").rglob("*.clicks"))
    return Sample(
        (time.monotonic() - began) / 60,
        sum(memory.values()),
        resident_mb(served.process.pid),
        sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids),
        sum(len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in pids),
        spool / 1e6,
        memory,
    )


def flatten(sample: Sample) -> dict[str, float]:
    """Return a sample as one row, with the memory of the processes by kind."""
    row = {name: getattr(sample, name) for name in _COLUMNS}
    for name, size in sample.processes.items():
        kind = f"{name.split()[0]}_mb"
        row[kind] = row.get(kind, 0.0) + size
    return row


def _read_pss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


def _name(pid: int) -> str:
    command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    for kind in ("serving", "redirecting", "fork server", "extraction"):
        if command.startswith(f"refract: {kind}") or f".{kind}" in command:
            return kind.replace(" ", "_")
    return "parent"


def send_redirects(served: Served, stop: threading.Event) -> None:
    for number in itertools.count():
        first = number * REDIRECTS_PER_CONNECTION
        ask(served.url, (f"/s{(first + i) % LINKS}" for i in range(REDIRECTS_PER_CONNECTION)))
        if stop.wait(REDIRECT_PAUSE):
            return


def send_requests(served: Served, data: BenchData, stop: threading.Event) -> None:
    client = WorkClient(served, data)
    for number in itertools.count():
        open_dashboards(client, number)
        client.call("GET", "/links?limit=50")
        if number % 5 == 0:
            client.call("POST", "/items", json.dumps({"text": f"Note {number} on memory."}))
        if number % 60 == 10:
            import_bookmarks(client, number)
        if number % 60 == 40:
            merge_tags(client, number)
        if number % 20 == 0:
            client.call("GET", "/stats")
        if stop.wait(0.4):
            return


def run(served: Served, data: BenchData, seconds: float) -> list[Sample]:
    """Load the server for so long, and return a sample every few seconds."""
    stop = threading.Event()
    loads: list[Callable[[], None]] = [
        lambda: send_redirects(served, stop),
        lambda: send_requests(served, data, stop),
    ]
    failed: list[BaseException] = []

    def guard(load: Callable[[], None]) -> None:
        try:
            load()
        except BaseException as exc:  # noqa: BLE001 - reported below, in the main thread
            failed.append(exc)

    threads = [threading.Thread(target=guard, args=(load,)) for load in loads]
    for thread in threads:
        thread.start()
    began, samples = time.monotonic(), []
    while time.monotonic() - began < seconds and not failed:
        time.sleep(SAMPLE_SECONDS)
        with suppress(OSError):  # a short-lived process has ended meanwhile
            samples.append(take_sample(served, began))
    stop.set()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return samples


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3.0)
    options = parser.parse_args(arguments)
    load_before = busy()
    with tempfile.TemporaryDirectory(prefix="refract-bench-") as directory:
        data = prepare(Path(directory) / "data", LINKS)
        with serving(data.data_dir, secret_key=SECRET, **SETTINGS) as served:
            samples = run(served, data, options.minutes * 60)
    third = len(samples) // 3
    warm, late = samples[third : 2 * third], samples[2 * third :]
    growth = {
        name: statistics.median(getattr(sample, name) for sample in late)
        / statistics.median(getattr(sample, name) for sample in warm)
        for name in ("memory_mb", "files")
    }
    print()
    names = ("minute", *_COLUMNS)
    shown = samples[:: max(1, len(samples) // 12)]
    table(
        [*names, "PSS of each process in MB"],
        [
            [f"{getattr(sample, name):.5g}" for name in names]
            + [", ".join(f"{name} {size:.0f}" for name, size in sample.processes.items())]
            for sample in shown
        ],
    )
    most = max(sample.memory_mb for sample in late)
    spool = max(sample.spool_mb for sample in late)
    print(
        f"P15 bar: ≤ {MAX_MB:g} MB after warm-up ({most:.0f}), growth ≤ {MAX_GROWTH:g}"
        f" (memory {growth['memory_mb']:.3f}, open files {growth['files']:.3f}); spool at most"
        f" {spool:.1f} MB"
    )
    write(
        "soak",
        "P15",
        load_before,
        options=vars(options),
        growth={"last third against the second": growth},
        most={"after warm-up": {"memory_mb": most, "spool_mb": spool}},
        samples={f"minute {sample.minute:.1f}": flatten(sample) for sample in shown},
    )
    return 0 if most <= MAX_MB and max(growth.values()) <= MAX_GROWTH else 1
