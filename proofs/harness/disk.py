"""A disk so small that it can be filled.

A tmpfs in a mount namespace of our own, which nobody else sees.
"""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_INSIDE = "PROOF_INSIDE"
UNSHARE = ["unshare", "--map-root-user", "--mount"]


def possible() -> bool:
    """Whether this machine lets us have a namespace of our own."""
    return (
        bool(shutil.which("unshare"))
        and subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    )


def inside() -> bool:
    return _INSIDE in os.environ


def run_inside(name: str, arguments: list[str]) -> int:
    """Run this proof again in a namespace of its own; its exit status."""
    if not possible():
        print(
            "unshare is not allowed here: no small disk can be made. Run this as root, or allow"
            " user namespaces."
        )
        return 2
    return subprocess.run(
        [*UNSHARE, sys.executable, "-m", "proofs", name, *arguments],
        env=os.environ | {_INSIDE: "1"},
        check=False,
    ).returncode


class SmallDisk:
    """A directory with so many bytes and no more."""

    def __init__(self, path: Path, size: int) -> None:
        path.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(path)], check=True
        )
        self.path = path
        self._ballast = path / "ballast"

    @asynccontextmanager
    async def full(self) -> AsyncIterator[None]:
        """No room for as long as the block runs: what others free meanwhile is taken at once."""
        self._take()
        task = asyncio.create_task(self._keep_full())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._ballast.unlink()

    async def _keep_full(self) -> None:
        while True:
            await asyncio.sleep(0.02)
            self._take()

    def _take(self) -> None:
        with contextlib.suppress(OSError), self._ballast.open("ab", buffering=0) as file:
            while file.write(bytes(1 << 16)):
                pass

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", str(self.path)], check=False)
