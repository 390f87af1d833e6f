"""The real services that the tests want: find them or start private ones, and leave nothing behind.

    python tools/services.py run -- CMD…    run CMD with URLs in REFRACT_TEST_…; return its status
    python tools/services.py status         list what is installed, and packages for the rest

In code: `with services() as s: s.postgresql.url`, and in a process below `run`:
`attach(os.environ["REFRACT_TEST_SERVICES"])`. A service whose variable is already set (say
REFRACT_TEST_POSTGRESQL_URL) is taken as it is and not started.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

if not __package__:  # run by its path: the repository is not on sys.path then
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tools import packages, processes
from tools.servers import KINDS, Server, ServerFailed, free_port

VARIABLES = {
    "postgresql": "REFRACT_TEST_POSTGRESQL_URL",
    "mysql": "REFRACT_TEST_MYSQL_URL",
    "redis": "REFRACT_TEST_REDIS_URL",
    "chromium": "REFRACT_TEST_CHROMIUM",
    "nginx": "REFRACT_TEST_NGINX",
    "caddy": "REFRACT_TEST_CADDY",
    "wrk": "REFRACT_TEST_WRK",
    "node": "REFRACT_TEST_NODE",
    "oidc": "REFRACT_TEST_OIDC_URL",
}
STATE = "REFRACT_TEST_SERVICES"
TESTS_NEED = ("postgresql", "mysql", "redis", "chromium", "nginx", "caddy", "oidc")


@dataclass
class Services:
    """What there is: an address (URL or program) by name, the servers that are ours, and a sentence
    for each thing that is absent.
    """

    file: Path
    addresses: dict[str, str] = field(default_factory=dict)
    servers: dict[str, Server] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    as_shipped: bool = False

    @property
    def postgresql(self) -> Server:
        return self.server("postgresql")

    @property
    def mysql(self) -> Server:
        return self.server("mysql")

    @property
    def redis(self) -> Server:
        return self.server("redis")

    def server(self, name: str) -> Server:
        """A server that we may stop and start; one given by a variable is not ours to stop."""
        if name not in self.servers:
            raise LookupError(self.absent.get(name, f"{name} was not started by us"))
        return self.servers[name]

    def environment(self) -> dict[str, str]:
        """The variables by which a command learns of all this."""
        return {VARIABLES[name]: address for name, address in self.addresses.items()} | {
            STATE: str(self.file)
        }

    def save(self) -> None:
        ports = {name: server.port for name, server in self.servers.items()}
        state = {
            "ports": ports,
            "addresses": self.addresses,
            "absent": self.absent,
            "as_shipped": self.as_shipped,
        }
        self.file.write_text(json.dumps(state, indent=2) + "\n")


def attach(path: str | os.PathLike[str]) -> Services:
    """The services that another process started, from the file it left.

    Stopping them for good stays that process's duty.
    """
    file = Path(path)
    state = json.loads(file.read_text())
    servers = {
        name: KINDS[name](file.parent, port, as_shipped=state["as_shipped"])
        for name, port in state["ports"].items()
    }
    return Services(file, state["addresses"], servers, state["absent"], state["as_shipped"])


@contextlib.contextmanager
def services(names: Sequence[str] = TESTS_NEED, *, as_shipped: bool = False) -> Iterator[Services]:
    """Find or start what is named; stop what was started, however this process ends."""
    base = _private_directory()
    watchdog = subprocess.Popen(
        [sys.executable, __file__, "watch", str(base)],
        stdin=subprocess.PIPE,
        cwd="/",
        start_new_session=True,
    )
    try:
        yield _gather(Services(base / "services.json", as_shipped=as_shipped), names)
    finally:
        watchdog.communicate()  # closing the pipe makes it clean up; wait until it has


def watch(base: Path) -> None:
    """Wait until the process that started us is gone or done, then stop its servers.

    The one way in which they are ever stopped for good.

    The kernel closes the pipe even after kill -9, and this process sits in a session that no Ctrl-C
    reaches.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    file = base / "services.json"
    if file.exists():
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda server: server.discard(), attach(file).servers.values()))
    processes.sweep(base)
    shutil.rmtree(base, ignore_errors=True)


def _private_directory() -> Path:
    """Readable for us, passable for the servers' user."""
    parent = Path(tempfile.gettempdir()).resolve()
    if os.geteuid() == 0 and any(
        not step.stat().st_mode & 0o001 for step in (parent, *parent.parents)
    ):
        # A temporary directory below a private home is closed to the servers' user.
        parent = Path("/tmp")  # noqa: S108 - see above
    base = Path(tempfile.mkdtemp(prefix="refract-services-", dir=parent))
    base.chmod(0o711)
    return base


def _gather(found: Services, names: Sequence[str]) -> Services:
    given = {name: os.environ[VARIABLES[name]] for name in names if os.environ.get(VARIABLES[name])}
    wanted = [name for name in names if name not in given]
    programs = packages.ensure(wanted)
    found.addresses = given | {name: path for name, path in programs.items() if name not in KINDS}
    found.absent = {
        name: f"install the Debian package {packages.DEBIAN[name]}"
        for name in wanted
        if name not in programs
    }
    found.servers = {
        name: KINDS[name](found.file.parent, free_port(), as_shipped=found.as_shipped)
        for name in programs
        if name in KINDS
    }
    found.save()  # before anything starts: the watchdog must be able to stop what is half started

    def start(server: Server) -> ServerFailed | None:
        try:
            server.initialise()
            server.start()
        except ServerFailed as exc:
            return exc
        return None

    with ThreadPoolExecutor() as pool:
        failures = dict(zip(found.servers, pool.map(start, found.servers.values()), strict=True))
    for name, failure in failures.items():
        if failure is None:
            found.addresses[name] = found.servers[name].url
        else:
            del found.servers[name]
            found.absent[name] = str(failure)
    found.save()
    return found


def run(command: Sequence[str], names: Sequence[str], *, as_shipped: bool = False) -> int:
    """Run a command among the services. Its exit code is ours, also when it dies of a signal."""

    def leave(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    with services(names, as_shipped=as_shipped) as found:
        for name, why in found.absent.items():
            print(f"services: no {name}: {why}", file=sys.stderr, flush=True)
        # Ctrl-C goes to the command too, as one of the same terminal: let it finish in its own way.
        signal.signal(signal.SIGINT, lambda _number, _frame: None)
        with subprocess.Popen(command, env=os.environ | found.environment()) as child:
            try:
                code = child.wait()
            finally:
                child.terminate()
        return code if code >= 0 else 128 - code


def status() -> int:
    """Print what is here; 1 when something is missing."""
    missing = False
    for name, package in packages.DEBIAN.items():
        where = packages.find(name)
        missing = missing or where is None
        print(f"{name:12}{where or f'missing: install the Debian package {package}'}")
    return int(missing)


def main() -> int:
    parser = argparse.ArgumentParser(description="Real services for the tests.")
    commands = parser.add_subparsers(dest="do", required=True)
    runner = commands.add_parser("run", help="run a command with private services around it")
    runner.add_argument(
        "--only", default=",".join(TESTS_NEED), help="which ones, by comma: " + ", ".join(VARIABLES)
    )
    runner.add_argument(
        "--as-shipped",
        action="store_true",
        help="servers with their vendors' settings, durable ones included (for measuring)",
    )
    runner.add_argument("command", nargs="+")
    commands.add_parser("status", help="say what is installed")
    commands.add_parser("watch").add_argument("base", type=Path)
    asked = parser.parse_args()
    if asked.do == "watch":
        watch(asked.base)
        return 0
    if asked.do == "status":
        return status()
    names = asked.only.split(",")
    unknown = [name for name in names if name not in VARIABLES]
    if unknown:
        parser.error(f"unknown service {', '.join(unknown)}; there are {', '.join(VARIABLES)}")
    try:
        return run(asked.command, names, as_shipped=asked.as_shipped)
    except KeyboardInterrupt:  # while the servers were starting
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
