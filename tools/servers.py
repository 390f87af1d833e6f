"""Private database servers for tests: one directory, one port and one ordinary user each.

A server belongs to no process: its directory and its port are all one needs to stop, kill and start
it. Fault tests do so from inside pytest while the command that started everything waits outside.
"""

import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import IO, ClassVar

from tools import packages, processes

DATABASE = "refract"


class ServerFailed(Exception):
    """A server did not come up, or did not go down; the message carries the end of its log."""


def free_port() -> int:
    """A port below the range that the kernel hands out to clients, by lot.

    Whoever else looks for one now finds another.

    A client that keeps knocking at a stopped server on a port inside that range ends up connected
    to itself.
    """
    lowest_ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.SystemRandom().sample(range(10_240, max(lowest_ephemeral, 12_000)), 200):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ServerFailed("no free port on 127.0.0.1")


class Server(ABC):
    """A running, or runnable, private server.

    It is small and never waits for the disk, as tests want it. `as_shipped` leaves durability and
    memory as the vendor sets them, for what is measured.
    """

    name: ClassVar[str]
    stop_signal: ClassVar[int] = signal.SIGTERM

    def __init__(self, base: Path, port: int, *, as_shipped: bool = False) -> None:
        self.base = base
        self.port = port
        self.as_shipped = as_shipped
        self.home = base / self.name
        self.log = base / f"{self.name}.log"
        self._pid_file = base / f"{self.name}.pid"

    @property
    @abstractmethod
    def url(self) -> str:
        """The address as Refract's settings take it."""

    @abstractmethod
    def command(self) -> list[str]:
        """The server, in the foreground."""

    @abstractmethod
    def ready(self) -> bool:
        """Does it answer, not merely listen?"""

    def initialise(self) -> None:
        """Make the home directory, owned by the user that the server will be."""
        self.home.mkdir(mode=0o700)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.home, nobody.pw_uid, nobody.pw_gid)

    @property
    def pid(self) -> int | None:
        """The server's process, or None while it is down.

        A number that now belongs to another process does not count.
        """
        try:
            pid, started = self._pid_file.read_text().split()
        except (OSError, ValueError):
            return None
        stat = processes.stat_of(int(pid))
        return int(pid) if stat and stat.alive and stat.started == started else None

    @property
    def running(self) -> bool:
        return self.pid is not None

    def start(self, timeout: float = 60) -> None:
        """Start unless running; return once it answers."""
        if self.pid is None:
            self._launch()
        deadline = time.monotonic() + timeout
        while not self.ready():
            if not self.running:
                raise ServerFailed(f"{self.name} ended while starting:\n{self._log_end()}")
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"{self.name} does not answer after {timeout:g} s:\n{self._log_end()}"
                )
            time.sleep(0.02)

    def stop(self, timeout: float = 60) -> None:
        """Stop in good order."""
        pid = self.pid
        if pid is None:
            return
        processes.send(pid, self.stop_signal)
        if not processes.wait_gone([pid], timeout):
            raise ServerFailed(
                f"{self.name} does not stop within {timeout:g} s:\n{self._log_end()}"
            )

    def kill(self) -> None:
        """SIGKILL, the server and its children, as when the machine runs out of memory."""
        pid = self.pid
        if pid is None:
            return
        family = [pid, *processes.children_of(pid)]
        for member in family:
            processes.send(member, signal.SIGKILL)
        if not processes.wait_gone(family, 10):
            raise ServerFailed(f"{self.name} survived SIGKILL")

    def restart(self) -> None:
        self.stop()
        self.start()

    def discard(self) -> None:
        """Stop for good, nothing needs to be kept."""
        self.kill()

    def _launch(self) -> None:
        """Through a shell that leaves at once.

        The server is then nobody's child and every process may stop it alike.
        """
        with self.log.open("ab") as log:
            done = self._as_server_user(
                ["/bin/sh", "-c", '"$@" >&2 & echo $!', "sh", *self.command()],
                stdout=subprocess.PIPE,
                stderr=log,
            )
        pid = int(done.stdout)
        stat = processes.stat_of(pid)
        if done.returncode != 0 or stat is None:
            raise ServerFailed(f"{self.name} ended at once:\n{self._log_end()}")
        self._pid_file.write_text(f"{pid} {stat.started}\n")

    def _run(self, command: list[str]) -> None:
        """One step of the initialisation."""
        with self.log.open("ab") as log:
            done = self._as_server_user(command, stdout=log, stderr=log)
        if done.returncode != 0:
            raise ServerFailed(
                f"{Path(command[0]).name} failed for {self.name}:\n{self._log_end()}"
            )

    def _as_server_user(
        self, command: list[str], stdout: int | IO[bytes], stderr: IO[bytes]
    ) -> subprocess.CompletedProcess[bytes]:
        """Never as root; in a session of its own, so that Ctrl-C in the terminal is not for it."""
        nobody = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.home),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
        }
        return subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=self.home,
            env=environment,
            umask=0o077,
            start_new_session=True,
            user=nobody.pw_uid if nobody else None,
            group=nobody.pw_gid if nobody else None,
            extra_groups=[] if nobody else None,
        )

    def _log_end(self) -> str:
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
        return "(no log)"

    def _ask(self, question: bytes, size: int) -> bytes:
        """One exchange by TCP; nothing when nobody answers."""
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection,
        ):
            connection.sendall(question)
            return connection.recv(size)
        return b""


class PostgreSQL(Server):
    """The newest PostgreSQL installed.

    Without fsync, yet a killed server loses nothing: the kernel has every commit.
    """

    name = "postgresql"
    stop_signal = signal.SIGINT  # "fast": do not wait for clients to leave

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def _bin(self) -> Path:
        directory = packages.postgresql_bin()
        if directory is None:
            raise ServerFailed("PostgreSQL is not installed")
        return directory

    def initialise(self) -> None:
        super().initialise()
        initdb = [
            str(self._bin / "initdb"),
            "-D",
            "data",
            "-A",
            "trust",
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        try:
            self._run(
                [*initdb, "--locale=C.UTF-8"]
            )  # trigrams of non-Latin text need a UTF-8 locale
        except ServerFailed:
            shutil.rmtree(self.home / "data", ignore_errors=True)
            self._run([*initdb, "--no-locale"])
        single = [str(self._bin / "postgres"), "--single", "-F", "-D", "data", "postgres"]
        self._run(["/bin/sh", "-c", 'echo "$0" | "$@"', f"CREATE DATABASE {DATABASE}", *single])

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "300",
        }
        if not self.as_shipped:
            settings |= {"shared_buffers": "32MB", "fsync": "off", "full_page_writes": "off"}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return [str(self._bin / "postgres"), "-D", "data", "-p", str(self.port), *options]

    def ready(self) -> bool:
        check = [
            str(self._bin / "pg_isready"),
            "-q",
            "-U",
            "postgres",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
        ]
        return subprocess.run(check, check=False).returncode == 0

    def _launch(self) -> None:
        """A killed server is a zombie until its parent looks.

        PostgreSQL takes that for a running one. We know better.
        """
        if not self.running:
            (self.home / "data/postmaster.pid").unlink(missing_ok=True)
        super()._launch()

    def discard(self) -> None:
        """At once, but by its own hand: SIGKILL would leave a shared memory segment behind."""
        pid = self.pid
        if pid is not None:
            processes.send(pid, signal.SIGQUIT)
            if not processes.wait_gone([pid], 10):
                self.kill()


class MariaDB(Server):
    """MariaDB with its own default collation.

    What Refract needs otherwise, Refract must ask for.
    """

    name = "mysql"

    @property
    def url(self) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/{DATABASE}"

    def initialise(self) -> None:
        super().initialise()
        install = packages.program("mariadb-install-db")
        if install is None:
            raise ServerFailed("mariadb-install-db is not installed")
        own = ["--no-defaults", f"--datadir={self.home}/data"]
        if not self.as_shipped:
            own += ["--innodb-log-file-size=16M", "--innodb-flush-method=nosync"]
        self._run(
            [
                install,
                *own,
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
            ]
        )
        # Read before the server listens, and as that user: so the file must be theirs to read.
        init = self.home / "init.sql"
        init.write_text(f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n")
        init.chmod(0o644)

    def command(self) -> list[str]:
        server = packages.find("mysql")
        if server is None:
            raise ServerFailed("mariadbd is not installed")
        settings = {
            "datadir": f"{self.home}/data",
            "init-file": f"{self.home}/init.sql",
            "socket": (
                "socket"
            ),  # relative to the data: a long temporary path would not fit into a socket's name
            "pid-file": "pid",
            "port": str(self.port),
            "bind-address": "127.0.0.1",
            "character-set-server": "utf8mb4",
            "max-connections": "300",
        }
        if not self.as_shipped:
            settings |= {
                "innodb-buffer-pool-size": "64M",
                "innodb-log-file-size": "16M",
                "innodb-flush-method": "nosync",
                # 2, not 0: written at every commit, so that a killed server keeps what it
                # acknowledged; 0 may lose a second.
                "innodb-flush-log-at-trx-commit": "2",
                "innodb-fast-shutdown": "1",
            }
        return [
            server,
            "--no-defaults",
            "--skip-name-resolve",
            *(f"--{key}={value}" for key, value in settings.items()),
        ]

    def ready(self) -> bool:
        greeting = self._ask(b"", 64)
        return (
            len(greeting) > 4 and greeting[4] == 10
        )  # protocol version; 255 would be "too many connections"


class Redis(Server):
    """Redis without a memory: after a restart it is empty, as a cache may be."""

    name = "redis"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        server = packages.find("redis")
        if server is None:
            raise ServerFailed("redis-server is not installed")
        return [
            server,
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(self.home),
            "--save",
            "",
            "--appendonly",
            "no",
        ]

    def ready(self) -> bool:
        return self._ask(b"PING\r\n", 16).startswith(b"+PONG")


class OpenIdProvider(Server):
    """A certified OpenID provider, fetched by name and checked by the hashes of its lock.

    Everybody may sign in there, as anybody.
    """

    name = "oidc"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def initialise(self) -> None:
        super().initialise()
        source = Path(__file__).with_name("oidc")
        for file in ("package.json", "package-lock.json", "provider.mjs"):
            shutil.copyfile(source / file, self.home / file)
            (self.home / file).chmod(0o644)
        npm = packages.program("npm")
        if npm is None:
            raise ServerFailed("npm is not installed")
        # As ourselves, whose cache and settings it needs; a fetched package runs no script of its
        # own.
        install = [
            npm,
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--prefer-offline",
            "--loglevel=error",
        ]
        with self.log.open("ab") as log:
            done = subprocess.run(
                install,
                check=False,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                umask=0o022,
                timeout=300,
            )
        if done.returncode != 0:
            raise ServerFailed(f"npm ci failed for {self.name}:\n{self._log_end()}")

    def command(self) -> list[str]:
        node = packages.find("node")
        if node is None:
            raise ServerFailed("node is not installed")
        return [node, "provider.mjs", str(self.port)]

    def ready(self) -> bool:
        request = b"GET /.well-known/openid-configuration HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"
        return self._ask(request, 64).startswith(b"HTTP/1.1 200")


KINDS: dict[str, type[Server]] = {
    kind.name: kind for kind in (PostgreSQL, MariaDB, Redis, OpenIdProvider)
}
