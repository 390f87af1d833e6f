"""P1 and P2: what a counted redirect costs, beside nginx answering the same names in the same run.

    python -m bench redirect [--rounds N] [--seconds S] [--connections C] [--domains D]

`refract serve` on SQLite in the role `redirect`, with the compiled lane and without it, and in the
role `all`, whose CPU is counted until every click of the round is stored. All take turns on the
same machine, with the headers that Chrome sends and with three. The figure of each is its best
round. CPU is utime + stime of the server's process tree over the requests answered in the round.

With `--domains D` another server has D domains with the same names on each, and every request goes
to another domain. Its CPU is compared with that of one domain.

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
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from bench._common import (
    AGENT,
    REFERRER,
    ask,
    busy,
    cpu_seconds,
    metrics,
    table,
    wait_for,
    write,
)
from bench._links import destination, make_domains, make_links
from tools.servers import free_port
from tools.serving import command, environment, serving

NAMES = 10_000
DRAIN_SECONDS = 300

CHROME = "Chrome's 15 headers"
SHORT = "3 headers"
CHROME_ACCEPT = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*"
    ";q=0.8,application/signed-exchange;v=b3;q=0.7"
)
HEADERS = {
    CHROME: [
        "Connection: keep-alive",
        'sec-ch-ua: "Not_A Brand";v="8", "Chromium";v="120", "Google Chrome";v="120"',
        "sec-ch-ua-mobile: ?0",
        'sec-ch-ua-platform: "Linux"',
        "Upgrade-Insecure-Requests: 1",
        f"User-Agent: {AGENT}",
        f"Accept: {CHROME_ACCEPT}",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Mode: navigate",
        "Sec-Fetch-User: ?1",
        "Sec-Fetch-Dest: document",
        f"Referer: {REFERRER}",
        "Accept-Encoding: gzip, deflate, br, zstd",
        "Accept-Language: en-US,en;q=0.9",
    ],
    SHORT: [f"User-Agent: {AGENT}", f"Referer: {REFERRER}"],
}
"""With `Host`, which is added for each server."""

# Every request another name, so that the table is really looked up and no cache line stays warm.
LUA = """
local number = 0
local rest = "\\r\\n" .. ([==[{head}]==]):gsub("\\n", "\\r\\n") .. "\\r\\n"
request = function()
  number = (number + 7919) % {names}
  return "GET /s" .. number .. " HTTP/1.1\\r\\nHost: " .. {host} .. rest
end
"""

REDIRECT, PYTHON_LANE, ALL = "refract redirect", "refract redirect, Python lane", "refract all"
DOMAINS = "refract redirect, domains"
MAX_DOMAINS_RATIO = 1.10
"""Of the CPU with many domains to that with one."""
BARS = {
    (REDIRECT, CHROME): (1.15, 0.9),
    (PYTHON_LANE, CHROME): (1.4, 0.0),
    (ALL, CHROME): (3.5, 0.0),
}
"""Maximum CPU and minimum rate, as multiples of nginx's."""


@dataclass
class Round:
    """One burst of load against one server."""

    headers: str
    answered: int
    rate: float
    cpu_us: float
    p99_ms: float
    errors: str | None

    def __str__(self) -> str:
        return (
            f"{self.cpu_us:6.2f} µs {self.rate:9.0f}/s  p99 {self.p99_ms:6.2f} ms"
            f"  answered {self.answered}  errors {self.errors}"
        )


@dataclass
class BenchServer:
    """A server under load. `stores` says that it also stores the clicks."""

    name: str
    url: str
    pid: int
    stores: bool = False
    domains: int = 0
    rounds: list[Round] = field(default_factory=list)

    def get_best(self, headers: str) -> tuple[float, float, float]:
        """Return CPU, rate and p99, each of its best round."""
        rounds = [burst for burst in self.rounds if burst.headers == headers]
        return (
            min(burst.cpu_us for burst in rounds),
            max(burst.rate for burst in rounds),
            min(burst.p99_ms for burst in rounds),
        )


@contextmanager
def nginx(directory: Path) -> Iterator[BenchServer]:
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
        yield BenchServer("nginx", f"http://127.0.0.1:{port}", process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextmanager
def ours(directory: Path, name: str, connections: int, domains: int = 0) -> Iterator[BenchServer]:
    """A real server on a database of its own, every name requested once before the load."""
    data = directory / name.replace(" ", "-")
    role = "all" if name == ALL else "redirect"
    lane = "python" if name == PYTHON_LANE else ""
    make_links(data, NAMES)
    if domains:
        make_domains(data, NAMES, domains)
    with serving(data, role=role, lane=lane) as served:
        server = BenchServer(
            name, served.url, served.process.pid, stores=role == "all", domains=domains
        )
        asked = [(f"/s{n}", f"d{n % domains}.example" if domains else "") for n in range(NAMES)]
        if ask(served.url, asked) != NAMES:
            raise SystemExit("not every name is redirected")
        expected = "python" if name == PYTHON_LANE else "compiled"
        if f'refract_lane{{implementation="{expected}"}}' not in metrics(served.url):
            raise SystemExit(f"{name} does not run the {expected} lane: python -m tools.extension")
        wait_until_stored(server)
        yield server
        wait_until_stored(server)
        figures = metrics(served.url)
    check_clicks(server, data, figures, connections)


def check_clicks(
    server: BenchServer, data: Path, figures: dict[str, float], connections: int
) -> None:
    """Compare redirects that wrk counted, clicks the server kept, and clicks that are stored."""
    answered = NAMES + sum(burst.answered for burst in server.rounds)
    kept = int(figures["refract_clicks_kept_total"])
    in_flight = connections * len(server.rounds)
    if figures["refract_clicks_not_kept_total"] or not answered <= kept <= answered + in_flight:
        raise SystemExit(f"clients saw {answered} redirects, {kept} clicks were kept")
    verified = subprocess.run(
        command("verify", "--data-dir", str(data)),
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    received = int(re.findall(r"received\s+([\d,]+)", verified.stdout)[0].replace(",", ""))
    if received != kept:
        raise SystemExit(f"the server kept {kept} clicks, {received} are stored or pending")
    print(
        f"{server.name}: clicks stored or in the spool = redirects answered by the server:"
        f" {received}"
    )


def wait_until_stored(server: BenchServer) -> None:
    """Wait until the clicks of a server that stores them are stored."""
    deadline = time.monotonic() + DRAIN_SECONDS
    while server.stores:
        figures = metrics(server.url)
        stored = figures.get("refract_clicks_stored_total", 0)
        if stored >= figures["refract_clicks_kept_total"]:
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"{server.name} has not stored its clicks in {DRAIN_SECONDS} s")
        time.sleep(0.25)


def load(server: BenchServer, headers: str, options: argparse.Namespace, script: Path) -> Round:
    host = urlsplit(server.url).netloc
    lines = "".join(f"{line}\n" for line in HEADERS[headers])
    named = f'"d" .. number % {server.domains} .. ".example"' if server.domains else f'"{host}"'
    script.write_text(LUA.format(head=lines, names=NAMES, host=named))
    before = cpu_seconds(server.pid)
    wrk = ["wrk", "-t1", f"-c{options.connections}", f"-d{options.seconds}s", "--latency"]
    out = subprocess.run(
        [*wrk, "-s", str(script), f"{server.url}/"], capture_output=True, text=True, check=True
    ).stdout
    wait_until_stored(server)
    cost = cpu_seconds(server.pid) - before
    answered = int(re.findall(r"(\d+) requests in", out)[0])
    errors = re.findall(r"(?:Socket errors|Non-2xx or 3xx responses).*", out)
    return Round(
        headers=headers,
        answered=answered,
        rate=float(re.findall(r"Requests/sec:\s+([\d.]+)", out)[0]),
        cpu_us=cost / answered * 1e6,
        p99_ms=parse_milliseconds(re.findall(r"^\s+99%\s+(\S+)", out, re.MULTILINE)[0]),
        errors=errors[0] if errors else None,
    )


def parse_milliseconds(text: str) -> float:
    """Return wrk's `912.00us`, `3.26ms` or `1.20s` in milliseconds."""
    number, unit = re.findall(r"([\d.]+)(us|ms|s|m)", text)[0]
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000}[unit]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="bench redirect", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--domains", type=int, default=0)
    options = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="refract-bench-"))
    directory.chmod(0o755)
    load_before = busy()
    if load_before > 0.5:
        print(
            f"load average {load_before:.1f} before we began: the rates (P2) of this run mean"
            " little"
        )
    try:
        with ExitStack() as stack:
            servers = [
                stack.enter_context(nginx(directory)),
                *(
                    stack.enter_context(ours(directory, name, options.connections))
                    for name in (REDIRECT, PYTHON_LANE, ALL)
                ),
            ]
            if options.domains:
                several = ours(directory, DOMAINS, options.connections, options.domains)
                servers.append(stack.enter_context(several))
            run_rounds(servers, options, directory / "names.lua")
    finally:
        shutil.rmtree(directory)
    return report(options, servers, load_before)


def compare_domains(servers: list[BenchServer]) -> list[str]:
    """Print the CPU with many domains as a multiple of that with one; return what is missed."""
    one, many = (next(s for s in servers if s.name == name) for name in (REDIRECT, DOMAINS))
    failed = []
    for headers in HEADERS:
        ratio = many.get_best(headers)[0] / one.get_best(headers)[0]
        print(f"{many.domains} domains, {headers}: {ratio:.3f} x the CPU of one domain")
        if ratio > MAX_DOMAINS_RATIO:
            failed.append(f"{headers}: at most {MAX_DOMAINS_RATIO} x with {many.domains} domains")
    return failed


def run_rounds(servers: list[BenchServer], options: argparse.Namespace, script: Path) -> None:
    for number in range(options.rounds):
        for headers in HEADERS:
            for server in servers:
                burst = load(server, headers, options, script)
                server.rounds.append(burst)
                print(f"{number + 1} {headers:19} {server.name:29} {burst}", flush=True)


def report(options: argparse.Namespace, servers: list[BenchServer], load_before: float) -> int:
    rows, ratios, failed = [], {}, []
    for headers in HEADERS:
        peer_cpu, peer_rate, _ = servers[0].get_best(headers)
        for server in servers:
            cpu, rate, p99 = server.get_best(headers)
            ratio = {"P1_cpu": cpu / peer_cpu, "P2_rate": rate / peer_rate}
            name = f"{server.name}, {headers}"
            ratios[name] = {"cpu_us": cpu, **ratio, "p99_ms": p99}
            figures = [f"{cpu:.2f}", f"{rate:.0f}", *(f"{part:.2f}" for part in ratio.values())]
            rows.append([name, *figures, f"{p99:.2f}"])
            most, least = BARS.get((server.name, headers), (float("inf"), 0.0))
            if ratio["P1_cpu"] > most or ratio["P2_rate"] < least:
                failed.append(f"{name}: at most {most} × CPU and at least {least} × rate")
    if options.domains:
        failed += compare_domains(servers)
    print()
    table(["", "µs CPU", "per second", "CPU x nginx", "rate x nginx", "p99 ms"], rows)
    print("role all: CPU until the last click of each round is stored")
    for line in failed:
        print(f"missed: {line}")
    rounds = {server.name: [asdict(burst) for burst in server.rounds] for server in servers}
    write("redirect", "P1, P2", load_before, options=vars(options), rounds=rounds, ratios=ratios)
    return 1 if failed else 0
