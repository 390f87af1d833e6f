"""Writing of spools: clicks are on disk before their redirects are sent.

A spool belongs to one start of one process. Its directory `<root>/<id>/` holds numbered segments, a
lock that the writer holds while it lives, a line about the writer, and the number of clicks that
were dropped for lack of space.
"""

import asyncio
import errno
import fcntl
import json
import logging
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, Protocol

from refract.clicks.spool.format import SEGMENT_HEADER_BYTES, build_segment_header

LOCK_FILE: Final = "lock"
ABOUT_FILE: Final = "about.json"
DROPPED_FILE: Final = "not-kept"
TEMP_PREFIX: Final = ".new-"
SEGMENT_SUFFIX: Final = ".clicks"

MIN_FREE_BYTES: Final = 1 << 20
"""Free bytes below which a disk counts as full.

They hold thousands of clicks, so that monitoring reports it before the last one is lost.
"""

_logger = logging.getLogger(__name__)


def format_segment_name(number: int) -> str:
    return f"{number:08d}{SEGMENT_SUFFIX}"


def format_spool_name(spool_id: int) -> str:
    return f"{spool_id:016x}"


class SpoolWriter:
    """The spool of this process.

    Disk errors never reach a redirect: clicks that cannot be written are counted as dropped.
    """

    def __init__(
        self,
        root: Path,
        *,
        node: str,
        segment_bytes: int = 8 << 20,
        sync: Literal["never", "always"] = "never",
    ) -> None:
        self.id = secrets.randbits(63)
        self.directory = root / format_spool_name(self.id)
        self.written = 0
        self.dropped = 0
        self.unflushed = 0  # written but not confirmed by the disk; only with `sync=always`
        self._node = node
        self._segment_bytes = segment_bytes
        self._sync = sync == "always"
        self._lock_fd = self._dropped_fd = self._segment_fd = -1
        self._segment = 0
        self._segment_size = 0
        self._saved_dropped = 0
        self._error: int | None = None
        self._open()

    @property
    def last_error(self) -> str | None:
        """Return the system's message if the last turn was not written in full, else None."""
        return None if self._error is None else os.strerror(self._error)

    def find_health_problem(self) -> str | None:
        """Return why clicks are not stored, or would not be if one came now.

        Checked actively: a process without traffic would not notice a full disk.
        """
        if self._error is None:
            try:
                disk = os.statvfs(self.directory.parent)
            except OSError as exc:
                return exc.strerror
            if disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES:
                return os.strerror(errno.ENOSPC)
        return self.last_error

    def append(self, frames: list[bytes]) -> int:
        """Append the frames in one write; return how many were written."""
        well, self._error = self._error is None, None
        data = b"".join(frames)
        kept = self._write(frames, data) if self._ensure_segment(len(data)) else 0
        if kept < len(frames):
            kept += self._retry_write(frames[kept:])
        self.written += kept
        if kept < len(frames):
            self.dropped += len(frames) - kept
            self._set_error(errno.ENOSPC)  # a short write gives no reason; this is the usual one
            if well:
                _logger.error("clicks_dropped: %s", self.last_error)
        if self._saved_dropped != self.dropped:
            self._save_dropped()
        return kept

    def _set_error(self, reason: int) -> None:
        """Set the reason unless a more exact one is known."""
        if self._error is None:
            self._error = reason

    def close(self) -> None:
        """Release the lock: from now on the ingester may finish and remove this spool."""
        for fd in (self._segment_fd, self._dropped_fd, self._lock_fd):
            if fd >= 0:
                os.close(fd)
        self._lock_fd = self._dropped_fd = self._segment_fd = -1

    def _open(self) -> bool:
        """Create the directory under a temporary name, take the lock, then rename it.

        So a reader never sees a spool without its lock, which would look abandoned.
        """
        unborn = self.directory.with_name(TEMP_PREFIX + self.directory.name)
        try:
            unborn.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            unborn.mkdir(mode=0o700, exist_ok=True)
            self._lock_fd = os.open(unborn / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            about = json.dumps(
                {"node": self._node, "pid": os.getpid(), "started_ns": time.time_ns()}
            )
            _create_file(unborn / ABOUT_FILE, about.encode(), os.O_TRUNC)
            # Written in full, so that updates on a full disk need no new block.
            self._dropped_fd = _create_file(
                unborn / DROPPED_FILE, b"%020d\n" % self.dropped, os.O_TRUNC, keep_open=True
            )
            unborn.rename(self.directory)
        except OSError as exc:
            self._error = exc.errno
            self.close()
            return False
        return self._open_next_segment()

    def _ensure_segment(self, size: int) -> bool:
        if self._lock_fd < 0:
            return self._open()
        if self._segment_fd < 0:
            return self._open_next_segment()
        if (
            self._segment_size > SEGMENT_HEADER_BYTES
            and self._segment_size + size > self._segment_bytes
        ):
            self._open_next_segment()  # if that fails, this segment goes on growing
        return True

    def _open_next_segment(self) -> bool:
        """Create the next segment; the current one is final as soon as it is visible.

        It becomes visible only when it can be written to.
        """
        path = self.directory / format_segment_name(self._segment + 1)
        unborn = path.with_suffix(".new")
        fd = -1
        try:
            fd = _create_file(
                unborn, build_segment_header(self.id), os.O_APPEND | os.O_TRUNC, keep_open=True
            )
            unborn.rename(path)
            if self._sync:
                _sync_directory(self.directory)
        except OSError as exc:
            self._error = exc.errno
            if fd >= 0:
                os.close(fd)
            return False
        if self._segment_fd >= 0:
            os.close(self._segment_fd)
        self._segment_fd, self._segment_size = fd, SEGMENT_HEADER_BYTES
        self._segment += 1
        return True

    def _write(self, frames: list[bytes], data: bytes) -> int:
        """Write once. After a short write, truncate the file behind the last whole frame."""
        try:
            written = os.write(self._segment_fd, data)
        except OSError as exc:
            self._error = exc.errno
            written = 0
        if written < len(data):
            return self._truncate_torn(frames, written)
        self._segment_size += written
        if self._sync:
            self._flush(len(frames))
        return len(frames)

    def _flush(self, frames: int) -> None:
        """Flush to disk. A failed flush does not undo the write: it may have been read already."""
        try:
            os.fdatasync(self._segment_fd)
        except OSError as exc:
            self._error = exc.errno
            self.unflushed += frames

    def _truncate_torn(self, frames: list[bytes], written: int) -> int:
        kept = whole = 0
        while whole + len(frames[kept]) <= written:
            whole += len(frames[kept])
            kept += 1
        try:
            os.ftruncate(self._segment_fd, self._segment_size + whole)
        except OSError as exc:
            # Nothing may follow the torn bytes: abandon this segment as it is.
            self._error = exc.errno
            os.close(self._segment_fd)
            self._segment_fd = -1
        self._segment_size += whole
        return kept

    def _retry_write(self, frames: list[bytes]) -> int:
        """Write again: a short write gives no reason, the second attempt does.

        A file that may not grow any more is followed by a new segment.
        """
        if self._segment_fd < 0:
            return 0
        kept = self._write(frames, b"".join(frames))
        if kept < len(frames) and self._error == errno.EFBIG and self._open_next_segment():
            rest = frames[kept:]
            kept += self._write(rest, b"".join(rest))
        return kept

    def _save_dropped(self) -> None:
        """Save the number of dropped clicks where it outlives the process.

        A failure is retried in the next turn.
        """
        line = b"%020d\n" % self.dropped
        try:
            if self._dropped_fd >= 0 and os.pwrite(self._dropped_fd, line, 0) == len(line):
                self._saved_dropped = self.dropped
        except OSError as exc:
            self._error = exc.errno


class ResponseTransport(Protocol):
    """The methods of a transport that a response needs."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class TurnBuffer:
    """The clicks and responses of one event-loop turn: one write to the spool, then the responses.

    `answers` are (transport, head) pairs in sending order; a head of None closes the connection.
    `ending` is the common end of all responses, with the date.
    """

    __slots__ = (
        "_call_soon",
        "_spool",
        "answered",
        "answers",
        "ending",
        "frames",
        "number",
        "waiting",
    )

    def __init__(
        self,
        spool: SpoolWriter,
        call_soon: Callable[[Callable[[], None]], object],
        ending: bytes = b"\r\n",
    ) -> None:
        self._spool = spool
        self._call_soon = call_soon
        self.frames: list[bytes] = []
        self.answers: list[tuple[ResponseTransport, bytes | None]] = []
        self.waiting: list[asyncio.Future[None]] = []
        self.ending = ending
        self.number = 0
        self.answered = 0

    def add_response(self, to: ResponseTransport, head: bytes | None) -> None:
        if not self.answers:
            self._call_soon(self.commit)
        self.answers.append((to, head))

    def add_click(self, frame: bytes) -> asyncio.Future[None]:
        """Add a click whose response is sent elsewhere.

        Return a future that is done once the click is on disk or counted as dropped.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self.waiting:
            self._call_soon(self.commit)
        self.frames.append(frame)
        self.waiting.append(future)
        return future

    def commit(self) -> None:
        """Write the clicks, then send the responses. May be called early and repeatedly."""
        frames, answers, waiting = self.frames, self.answers, self.waiting
        self.frames, self.answers = [], []
        self.number += 1
        try:
            if frames:
                self._spool.append(frames)
        finally:
            ending = self.ending
            self.answered += len(answers)
            for transport, head in answers:
                try:
                    if head is None:
                        self.answered -= 1
                        transport.close()
                    else:
                        transport.write(head + ending)
                except Exception:  # one broken connection must not affect the others
                    _logger.warning("response_failed", exc_info=True)
            if waiting:
                self.waiting = []
                for future in waiting:
                    if not future.done():
                        future.set_result(None)


def _create_file(path: Path, content: bytes, flags: int, keep_open: bool = False) -> int:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    try:
        if os.write(fd, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.close(fd)
        raise
    if keep_open:
        return fd
    os.close(fd)
    return -1


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
