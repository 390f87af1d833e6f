"""What benches share: a server and its cost, the machine, and where results go."""

import json
import os
import platform
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

RESULTS = Path(__file__).parent / "results"
AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0"
    " Safari/537.36"
)
REFERRER = "https://news.example.org/section/article"
WRK_HEADERS = ["-H", f"User-Agent: {AGENT}", "-H", f"Referer: {REFERRER}"]


def wait_for(port: int) -> None:
    for _ in range(400):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"nothing answers on port {port}")


def tree(pid: int) -> set[int]:
    found = {pid}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found |= tree(int(child))
    return found


def cpu_seconds(pid: int) -> float:
    """utime + stime of a process and everything below it."""
    ticks = 0
    for one in tree(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def waited_seconds(pid: int) -> float:
    """How long a process was ready to run and got no core, its threads and children included.

    Other people's work, not ours.
    """
    files = (path for one in tree(pid) for path in Path(f"/proc/{one}/task").glob("*/schedstat"))
    return sum(int(path.read_text().split()[1]) for path in files) / 1e9


def resident_mb(pid: int) -> float:
    pages = sum(int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in tree(pid))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def memory_mb(pid: int) -> float:
    """Proportional set size of a process and everything below it: shared pages count once."""
    found = (Path(f"/proc/{one}/smaps_rollup").read_text().splitlines() for one in tree(pid))
    lines = (line for lines in found for line in lines if line.startswith("Pss:"))
    return sum(int(line.split()[1]) for line in lines) * 1024 / 1e6


def metrics(url: str) -> dict[str, float]:
    """The server's own figures by name and labels, those of its processes added up."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:  # noqa: S310 - our own server
        lines = answer.read().decode().splitlines()
    found: dict[str, float] = {}
    for line in lines:
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            name = re.sub(r'process="\w+",?', "", name).removesuffix("{}")
            found[name] = found.get(name, 0.0) + float(value)
    return found


def ask(url: str, paths: Iterable[str | tuple[str, str]]) -> int:
    """Ask for every path on one connection, or path and host; return how many were redirects."""
    parts = urlsplit(url)
    redirects = 0
    with (
        socket.create_connection((parts.hostname or "", parts.port or 80)) as wire,
        wire.makefile("rb") as answers,
    ):
        for asked in paths:
            path, host = (asked, "") if isinstance(asked, str) else asked
            head = f"Host: {host or 'localhost'}\r\nUser-Agent: {AGENT}\r\n\r\n"
            wire.sendall(f"GET {path} HTTP/1.1\r\n{head}".encode())
            redirects += answers.readline().split()[1][:1] == b"3"
            length = 0
            while (line := answers.readline().strip().lower()) != b"":
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            answers.read(length)
    return redirects


def machine() -> dict[str, str | int | None]:
    model = re.findall(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    version = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=True).stderr
    return {
        "processor": model[0] if model else platform.processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "nginx": version.strip().rpartition("/")[2],
    }


def busy() -> float:
    """Processes wanting a core that are not ours.

    Above nought, rates and times say little and ratios of CPU still hold.
    """
    return os.getloadavg()[0]


def table(header: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(row[place]) for row in [header, *rows]) for place in range(len(header))]
    for row in [header, *rows]:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join([row[0].ljust(widths[0]), *cells[1:]]))


def write(name: str, question: str, load_before: float, **result: Any) -> None:
    RESULTS.mkdir(exist_ok=True)
    whole = {
        "question": question,
        "machine": machine(),
        "load_average_before": load_before,
        **result,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(whole, indent=2) + "\n")
