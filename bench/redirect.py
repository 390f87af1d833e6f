"""P1 and P2: what a counted redirect costs, beside nginx answering the same names in the same run.

    python -m bench redirect [--rounds N] [--seconds S] [--connections C]

`refract serve` on SQLite, in the role `redirect` and, as a second line, in the role `all`, whose
CPU includes storing the clicks. All three take turns on the same machine; the figure of each is its
best round. CPU is utime + stime of the server's process tree over the requests answered in the
round.

"Clicks = redirects": wrk stops its clock without waiting for answers still on their way, and counts
only responses it has read in full. So over the run: redirects wrk counted ≤ clicks accepted ≤
redirects wrk counted + connections × rounds. The exact equality is checked beside it: clicks
accepted (stored or still in the spool) = redirects the server says it answered.
"""

import argparse
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench._common import WRK_HEADERS, ask, busy, cpu_seconds, metrics, table, wait_for, write
from bench._links import destination, make_links
from tools.servers import free_port
from tools.serving import command, environment, serving

NAMES = 10_000

# Every request another name, so that the table is really looked up and no cache line stays warm by
# itself.
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

    def __str__(self) -> str:
        return (
            f"{self.cpu_us:6.2f} µs {self.rate:9.0f}/s  p99 {self.p99:>8}  answered {self.answered}"
            f"  errors {self.errors}"
        )


@dataclass
class Server:
    name: str
    url: str
    pid: int
    rounds: list[Round] = field(default_factory=list)

    @property
    def cpu_us(self) -> float:
        return min(each.cpu_us for each in self.rounds)

    @property
    def rate(self) -> float:
        return max(each.rate for each in self.rounds)


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
    process = subprocess.Popen(
        ["nginx", "-c", str(config), "-p", str(directory)], stderr=subprocess.DEVNULL
    )
    try:
        wait_for(port)
        yield Server("nginx", f"http://127.0.0.1:{port}", process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextmanager
def ours(directory: Path, role: str, connections: int) -> Iterator[Server]:
    """A real server on a database of its own, every name asked for once before the load."""
    data = directory / role
    make_links(data, NAMES)
    with serving(data, role=role) as served:
        server = Server(f"refract {role}", served.url, served.process.pid)
        if ask(served.url, (f"/s{number}" for number in range(NAMES))) != NAMES:
            raise SystemExit("not every name is redirected")
        yield server
        figures = metrics(served.url)
    answered = NAMES + sum(each.answered for each in server.rounds)
    kept = int(figures["refract_clicks_kept_total"])
    if figures[
        "refract_clicks_not_kept_total"
    ] or not answered <= kept <= answered + connections * len(server.rounds):
        raise SystemExit(f"clients saw {answered} redirects, {kept} clicks were kept")
    verified = subprocess.run(
        command("verify", "--data-dir", str(data)),
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    accepted = int(re.findall(r"accepted\s+([\d,]+)", verified.stdout)[0].replace(",", ""))
    if accepted != kept:
        raise SystemExit(f"the server kept {kept} clicks, {accepted} are stored or pending")
    print(
        f"{server.name}: clicks stored or in the spool = redirects answered by the server:"
        f" {accepted}"
    )


def load(server: Server, seconds: int, connections: int, script: Path) -> Round:
    before = cpu_seconds(server.pid)
    out = subprocess.run(
        [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{seconds}s",
            "--latency",
            "-s",
            str(script),
            *WRK_HEADERS,
            f"{server.url}/",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    cost = cpu_seconds(server.pid) - before
    answered = int(re.findall(r"(\d+) requests in", out)[0])
    errors = re.findall(r"(?:Socket errors|Non-2xx or 3xx responses).*", out)
    return Round(
        answered=answered,
        rate=float(re.findall(r"Requests/sec:\s+([\d.]+)", out)[0]),
        cpu_us=cost / answered * 1e6,
        p99=re.findall(r"99%\s+(\S+)", out)[0],
        errors=errors[0] if errors else None,
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="bench redirect", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="refract-bench-"))
    directory.chmod(0o755)
    script = directory / "names.lua"
    script.write_text(LUA)
    load_before = busy()
    if load_before > 0.5:
        print(
            f"load average {load_before:.1f} before we began: the rates (P2) of this run mean"
            " little"
        )
    try:
        with ExitStack() as open_servers:
            servers = [open_servers.enter_context(nginx(directory))]
            servers += [
                open_servers.enter_context(ours(directory, role, options.connections))
                for role in ("redirect", "all")
            ]
            for number in range(options.rounds):
                for server in servers:
                    server.rounds.append(load(server, options.seconds, options.connections, script))
                    print(f"round {number + 1} {server.name:16} {server.rounds[-1]}", flush=True)
    finally:
        shutil.rmtree(directory)
    return report(options, servers, load_before)


def report(options: argparse.Namespace, servers: list[Server], load_before: float) -> int:
    peer = servers[0]
    ratios = {
        one.name: {"P1_cpu": one.cpu_us / peer.cpu_us, "P2_rate": one.rate / peer.rate}
        for one in servers
    }
    print()
    table(
        ["", "µs CPU", "per second", "CPU x nginx", "rate x nginx"],
        [
            [
                one.name,
                f"{one.cpu_us:.2f}",
                f"{one.rate:.0f}",
                f"{ratios[one.name]['P1_cpu']:.2f}",
                f"{ratios[one.name]['P2_rate']:.2f}",
            ]
            for one in servers
        ],
    )
    print("P1 bar 1.6 (aim 1.25) and P2 bar 0.6 (aim 0.8) are for the role redirect")
    rounds = {one.name: [asdict(each) for each in one.rounds] for one in servers}
    write("redirect", "P1, P2", load_before, options=vars(options), rounds=rounds, ratios=ratios)
    return 0 if ratios["refract redirect"]["P1_cpu"] <= 1.6 else 1
