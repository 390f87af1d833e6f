"""Looking after processes that are not our children, by what Linux says about them in /proc."""

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple


class Stat(NamedTuple):
    """What tells one process from another that later got its number."""

    alive: bool
    parent: int
    started: str


def stat_of(pid: int) -> Stat | None:
    """None when it is gone. A zombie counts as dead: it waits for its parent, not for us."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return Stat(alive=fields[0] not in "ZX", parent=int(fields[1]), started=fields[19])


def alive(pid: int) -> bool:
    stat = stat_of(pid)
    return stat is not None and stat.alive


def _pids() -> Iterator[int]:
    entries = os.listdir("/proc")  # noqa: PTH208 - a Path for every process would be waste
    return (int(entry) for entry in entries if entry.isdigit())


def children_of(parent: int) -> list[int]:
    stats = ((pid, stat_of(pid)) for pid in _pids())
    return [pid for pid, stat in stats if stat is not None and stat.parent == parent]


def read_cpu_of_trees(roots: Collection[int]) -> float:
    """Return the CPU seconds of processes and everything below them, with children that ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for pid in _pids():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            fields = file.read().rpartition(")")[2].split()
            parents[pid] = int(fields[1])
            ticks[pid] = sum(map(int, fields[11:15]))
    found, wanted = 0, [pid for pid in roots if pid in ticks]
    below: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        below.setdefault(parent, []).append(pid)
    while wanted:
        pid = wanted.pop()
        found += ticks[pid]
        wanted += below.get(pid, [])
    return found / os.sysconf("SC_CLK_TCK")


def wait_gone(pids: list[int], timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def sweep(base: Path) -> None:
    """Kill whatever still works inside a directory of ours.

    Servers, their children, half-done initialisations.
    """
    inside = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            if pid != os.getpid() and Path(f"/proc/{pid}/cwd").readlink().is_relative_to(base):
                inside.append(pid)
    for pid in inside:
        send(pid, signal.SIGKILL)
    wait_gone(inside, 10)
