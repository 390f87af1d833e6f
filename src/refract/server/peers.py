"""Metrics of all server processes of a node, collected by the one that is scraped.

Each process listens on its own socket in a private directory that their parent created, and serves
its metrics there. In the result every sample has the name of its process, so that nothing is
summed up that a restart would make jump. A serving process is called by its number, the other one
`background`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

_SOCKET_SUFFIX = ".socket"
PEER_TIMEOUT = 0.5
"""Timeout of a process that does not answer: its metrics are missing, and the others' not late."""


class MetricsPeers:
    """A process among those of its node."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name

    @asynccontextmanager
    async def serve(self, render: Callable[[], bytes]) -> AsyncIterator[None]:
        """Serve this process's metrics to the others during the block."""

        async def send_metrics(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                writer.write(render())
                await writer.drain()
            writer.close()

        path = self._get_socket_path(self._name)
        path.unlink(missing_ok=True)  # of the process that this one replaces
        server = await asyncio.start_unix_server(send_metrics, path)
        try:
            yield
        finally:
            server.close()

    async def collect(self, own: bytes) -> bytes:
        """Return the metrics of all processes that answer."""
        names = {path.stem for path in self._directory.glob(f"*{_SOCKET_SUFFIX}")}
        others = sorted(names - {self._name})
        replies = await asyncio.gather(*(self._fetch_peer(name) for name in others))
        texts = {
            self._name: own,
            **{name: text for name, text in zip(others, replies, strict=True) if text},
        }
        return merge_expositions({name: texts[name] for name in sorted(texts, key=_sort_key)})

    async def _fetch_peer(self, name: str) -> bytes:
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(PEER_TIMEOUT):
                reader, writer = await asyncio.open_unix_connection(self._get_socket_path(name))
                return await reader.read()
        except (OSError, TimeoutError):
            return b""
        finally:
            if writer is not None:
                writer.close()

    def _get_socket_path(self, name: str) -> Path:
        return self._directory / f"{name}{_SOCKET_SUFFIX}"


def _sort_key(name: str) -> tuple[bool, int, str]:
    """Sort numbers by value, before names."""
    return not name.isdigit(), int(name) if name.isdigit() else 0, name


def merge_expositions(texts: Mapping[str, bytes]) -> bytes:
    """Merge expositions: each family once, and each sample with the name of its process."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for name, text in texts.items():
        family = ""
        for line in text.decode().splitlines():
            if line.startswith("# "):
                family = line.split(" ", 3)[2]
                known = heads.setdefault(family, [])
                if line not in known and len(known) < 2:
                    known.append(line)
            elif line:
                samples.setdefault(family, []).append(_add_process_label(line, name))
    lines = [line for family, head in heads.items() for line in (*head, *samples.get(family, ()))]
    processes = [
        "# HELP refract_processes Server processes of this node that answered",
        "# TYPE refract_processes gauge",
    ]
    return ("\n".join([*lines, *processes, f"refract_processes {len(texts)}"]) + "\n").encode()


def _add_process_label(line: str, process: str) -> str:
    name, brace, rest = line.partition("{")
    if brace:
        return f'{name}{{process="{process}",{rest}'
    name, _, value = line.partition(" ")
    return f'{name}{{process="{process}"}} {value}'
