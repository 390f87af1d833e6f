"""Questions to /proc about processes we started.

Who is whose child, who holds a lock, who has the other end of a connection.
"""

import contextlib
import os
import signal
from pathlib import Path

from tools.processes import children_of

_ESTABLISHED = "01"
_LISTEN = "0A"


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """Alive ones, by the kernel's own list: cheaper than a look at every process of the machine."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return [child for child in found if state(child) not in "ZX"]


def descendants(pid: int) -> list[int]:
    found = children(pid) or children_of(pid)
    return found + [below for child in found for below in descendants(child)]


def state(pid: int) -> str:
    """R running, S sleeping, D waiting for a disk, T stopped, Z dead and not yet buried.

    X for gone.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def cpu_seconds(pid: int) -> float:
    """What a process has used of the processor so far.

    Unlike time, this does not depend on what else the machine does.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process; 0 for one that is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def command(pid: int) -> str:
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        return ""


def is_child(pid: int) -> bool:
    """Return whether this process serves or redirects for a parent."""
    return command(pid).startswith(("refract: serving", "refract: redirecting"))


def working_for(data: Path) -> list[int]:
    """Server processes whose parent was killed and who still have this data directory in their
    environment.
    """
    wanted = f"REFRACT_DATA_DIR={data}\0".encode()
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 - a Path for every process would be waste
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                environment = Path(f"/proc/{entry}/environ").read_bytes()
                if wanted in environment and is_child(int(entry)):
                    found.append(int(entry))
    return found


def lock_holder(path: Path) -> int | None:
    """Who holds a flock on this file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if len(words) >= 8 and words[1] == "FLOCK" and words[5] == file:
            return int(words[4])
    return None


def connections(port: int, pids: list[int]) -> dict[int, int]:
    """Return the process that serves each connection to `port`, by the client's port."""
    ends: dict[str, int] = {}
    for words in _tcp_table():
        if words[3] == _ESTABLISHED and _port(words[1]) == port:
            ends[words[9]] = _port(words[2])
    found: dict[int, int] = {}
    for pid in pids:
        for inode in _sockets(pid):
            if inode in ends:
                found[ends[inode]] = pid
    return found


def polls_a_listener(pid: int, port: int) -> bool:
    """Whether an epoll of the process watches the listening socket.

    It accepts connections, not merely inherited the socket.
    """
    listeners = {
        words[9] for words in _tcp_table() if words[3] == _LISTEN and _port(words[1]) == port
    }
    files = _descriptors(pid)
    inherited = {
        fd
        for fd, target in files.items()
        if target.removeprefix("socket:[").rstrip("]") in listeners
    }
    for fd, target in files.items():
        if target == "anon_inode:[eventpoll]":
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{pid}/fdinfo/{fd}").read_text().splitlines()
                if any(line.split()[1] in inherited for line in lines if line.startswith("tfd:")):
                    return True
    return False


def _tcp_table() -> list[list[str]]:
    return [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _descriptors(pid: int) -> dict[str, str]:
    found: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - thousands of them
            with contextlib.suppress(OSError):
                found[fd] = os.readlink(f"/proc/{pid}/fd/{fd}")  # noqa: PTH115 - the same
    return found


def _sockets(pid: int) -> list[str]:
    return [target[8:-1] for target in _descriptors(pid).values() if target.startswith("socket:[")]
