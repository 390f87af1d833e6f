"""The server processes of one node, measured together: whichever of them is asked asks the others.

Each listens on a socket of its own in a private directory that their parent made, and says there what it has counted. In the answer every
sample carries the number of its process, so that nothing is added up that a restart would make jump.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

PEER_TIMEOUT = 0.5
"""For a process that does not answer: its figures are then missing, and the others' are not late."""


class MetricsPeers:
    """One process among those of its node."""

    def __init__(self, directory: Path, number: int) -> None:
        self._directory = directory
        self._number = number

    @asynccontextmanager
    async def serve(self, render: Callable[[], bytes]) -> AsyncIterator[None]:
        """Answer the others for as long as the block runs."""

        async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                writer.write(render())
                await writer.drain()
            writer.close()

        path = self._get_socket_path(self._number)
        path.unlink(missing_ok=True)  # of the process whose place we take
        server = await asyncio.start_unix_server(answer, path)
        try:
            yield
        finally:
            server.close()

    async def collect(self, own: bytes) -> bytes:
        """The figures of all processes that answer."""
        numbers = sorted(
            int(path.stem) for path in self._directory.glob("*.socket") if path.stem.isdigit()
        )
        others = [number for number in numbers if number != self._number]
        told = await asyncio.gather(*(self._fetch_peer(number) for number in others))
        texts = {
            self._number: own,
            **{number: text for number, text in zip(others, told, strict=True) if text},
        }
        return merge_expositions({number: texts[number] for number in sorted(texts)})

    async def _fetch_peer(self, number: int) -> bytes:
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(PEER_TIMEOUT):
                reader, writer = await asyncio.open_unix_connection(self._get_socket_path(number))
                return await reader.read()
        except (OSError, TimeoutError):
            return b""
        finally:
            if writer is not None:
                writer.close()

    def _get_socket_path(self, number: int) -> Path:
        return self._directory / f"{number}.socket"


def merge_expositions(texts: dict[int, bytes]) -> bytes:
    """Several expositions as one: each family once, and each sample with the number of its process."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for number, text in texts.items():
        family = ""
        for line in text.decode().splitlines():
            if line.startswith("# "):
                family = line.split(" ", 3)[2]
                known = heads.setdefault(family, [])
                if line not in known and len(known) < 2:
                    known.append(line)
            elif line:
                samples.setdefault(family, []).append(_add_process_label(line, number))
    lines = [line for family, head in heads.items() for line in (*head, *samples.get(family, ()))]
    processes = [
        "# HELP refract_processes Server processes of this node that answered",
        "# TYPE refract_processes gauge",
    ]
    return ("\n".join([*lines, *processes, f"refract_processes {len(texts)}"]) + "\n").encode()


def _add_process_label(line: str, number: int) -> str:
    name, brace, rest = line.partition("{")
    if brace:
        return f'{name}{{process="{number}",{rest}'
    name, _, value = line.partition(" ")
    return f'{name}{{process="{number}"}} {value}'
