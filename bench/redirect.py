"""P1 and P2: what a counted redirect costs, beside nginx answering the same names in the same run.

    python -m bench.redirect [--rounds N] [--seconds S] [--connections C]

Ours and nginx take turns on the same machine; the figure of each is its best round. CPU is utime + stime of the server's
process tree over the requests answered in the round.

"Clicks = redirects": wrk stops its clock without waiting for answers still on their way, and counts only responses it has
read in full. So per round: redirects wrk counted ≤ clicks in the spool ≤ redirects wrk counted + connections. The exact
equality is checked beside it: frames in the spool = redirects the server says it answered.
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.lane_server import destination
from refract.analytics.spool_reader import Position, pending, spools

AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36"
REFERRER = "https://news.example.org/section/article"
HEADERS = ["-H", f"User-Agent: {AGENT}", "-H", f"Referer: {REFERRER}"]
NAMES = 10_000
RESULTS = Path(__file__).parent / "results"

# Every request another name, so that the table is really looked up and no cache line stays warm by itself.
LUA = f"""
local number = 0
request = function()
  number = (number + 7919) % {NAMES}
  return wrk.format("GET", "/s" .. number)
end
"""


@dataclass
class Round:
    """One burst of load against one server."""

    answered: int
    rate: float
    cpu_us: float
    p99: str
    errors: str | None
    clicks: int | None = None

    def __str__(self) -> str:
        counted = "" if self.clicks is None else f"  clicks {self.clicks}"
        return f"{self.cpu_us:6.2f} µs {self.rate:9.0f}/s  p99 {self.p99:>8}  answered {self.answered}{counted}  errors {self.errors}"


@dataclass
class Server:
    name: str
    port: int
    pid: int
    spool: Path | None = None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tree(pid: int) -> set[int]:
    found = {pid}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found |= tree(int(child))
    return found


def cpu_seconds(pid: int) -> float:
    ticks = 0
    for one in tree(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"nothing answers on port {port}")


@contextmanager
def nginx(directory: Path) -> Iterator[Server]:
    """One worker, a map of the same names, buffered access log."""
    port = free_port()
    names = "\n".join(f'    "/s{n}" "{destination(n)}";' for n in range(NAMES))
    (directory / "names.map").write_text(names)
    config = directory / "nginx.conf"
    config.write_text(f"""
worker_processes 1;
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ worker_connections 4096; }}
http {{
  map_hash_max_size 65536;
  map_hash_bucket_size 128;
  map $uri $target {{
    include {directory}/names.map;
  }}
  access_log {directory}/access.log combined buffer=64k;
  keepalive_requests 1000000000;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      if ($target = "") {{ return 404; }}
      add_header Cache-Control "private, no-store";
      return 302 $target;
    }}
  }}
}}
""")
    process = subprocess.Popen(["nginx", "-c", str(config), "-p", str(directory)], stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield Server("nginx", port, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextmanager
def ours(directory: Path) -> Iterator[Server]:
    port = free_port()
    spool = directory / "spool"
    source = Path(__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(source / "src")])}
    command = [sys.executable, "-m", "bench.lane_server", str(port), str(spool), str(NAMES)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        wait_for(port)
        yield Server("refract", port, process.pid, spool)
    finally:
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
        check_total(spool, out)


def check_total(root: Path, said: str) -> None:
    """Frames on disk = redirects the server says it answered."""
    answered, lost = map(int, re.findall(r"answered=(\d+) not_kept=(\d+)", said)[0])
    frames = clicks_in(root)
    if answered != frames or lost:
        raise SystemExit(f"the server answered {answered} redirects, the spool holds {frames} clicks, {lost} were not kept")
    print(f"clicks in the spool = redirects answered by the server: {frames}")


def clicks_in(root: Path) -> int:
    return sum(pending(spool, Position()).clicks for spool in spools(root))


def load(server: Server, seconds: int, connections: int, script: Path) -> Round:
    before = cpu_seconds(server.pid)
    clicks = clicks_in(server.spool) if server.spool else 0
    out = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script), *HEADERS, f"http://127.0.0.1:{server.port}/"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    cost = cpu_seconds(server.pid) - before
    answered = int(re.findall(r"(\d+) requests in", out)[0])
    errors = re.findall(r"(?:Socket errors|Non-2xx or 3xx responses).*", out)
    result = Round(
        answered=answered,
        rate=float(re.findall(r"Requests/sec:\s+([\d.]+)", out)[0]),
        cpu_us=cost / answered * 1e6,
        p99=re.findall(r"99%\s+(\S+)", out)[0],
        errors=errors[0] if errors else None,
    )
    if server.spool:
        result.clicks = clicks_in(server.spool) - clicks
        if not answered <= result.clicks <= answered + connections:
            raise SystemExit(f"wrk saw {answered} redirects, the spool has {result.clicks} clicks")
    return result


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
    """Processes wanting a core that are not ours: above nought, rates say little and ratios of CPU still hold."""
    return os.getloadavg()[0]


def best(rounds: list[Round]) -> dict[str, float]:
    return {"cpu_us": min(each.cpu_us for each in rounds), "rate": max(each.rate for each in rounds)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="refract-bench-"))
    directory.chmod(0o755)
    script = directory / "names.lua"
    script.write_text(LUA)
    rounds: dict[str, list[Round]] = {"nginx": [], "refract": []}
    load_before = busy()
    if load_before > 0.5:
        print(f"load average {load_before:.1f} before we began: the rates (P2) of this run mean little")
    try:
        with nginx(directory) as peer, ours(directory) as us:
            for server in (peer, us):
                load(server, 1, options.connections, script)
            for number in range(options.rounds):
                for server in (peer, us):
                    result = load(server, options.seconds, options.connections, script)
                    rounds[server.name].append(result)
                    print(f"round {number + 1} {server.name:8} {result}", flush=True)
    finally:
        shutil.rmtree(directory)
    report(options, rounds, load_before)


def report(options: argparse.Namespace, rounds: dict[str, list[Round]], load_before: float) -> None:
    figures = {name: best(each) for name, each in rounds.items()}
    ratios = {
        "P1_cpu": figures["refract"]["cpu_us"] / figures["nginx"]["cpu_us"],
        "P2_rate": figures["refract"]["rate"] / figures["nginx"]["rate"],
    }
    print(f"\n{'':10}{'µs CPU':>8}{'per second':>12}")
    for name, figure in figures.items():
        print(f"{name:10}{figure['cpu_us']:8.2f}{figure['rate']:12.0f}")
    print(f"P1 CPU per counted redirect: {ratios['P1_cpu']:.2f} x nginx (bar 1.6, aim 1.25)")
    print(f"P2 redirects per second:     {ratios['P2_rate']:.2f} x nginx (bar 0.6, aim 0.8)")
    RESULTS.mkdir(exist_ok=True)
    result = {
        "question": "P1, P2",
        "machine": machine(),
        "load_average_before": load_before,
        "options": vars(options),
        "rounds": {name: [asdict(each) for each in all_of] for name, all_of in rounds.items()},
        "best": figures,
        "ratios": ratios,
    }
    (RESULTS / "redirect.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
