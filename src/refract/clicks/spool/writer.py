"""Clicks on disk before their redirects leave: the writing side.

A spool belongs to one process and one start of it. Its directory `<root>/<id>/` holds numbered segments, a lock that the
writer keeps for as long as it lives, a line about the writer, and the number of clicks that found no room.
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
"""Bytes on the disk below which it counts as full: thousands of clicks, so that whoever watches hears of it before the last."""

_logger = logging.getLogger(__name__)


def format_segment_name(number: int) -> str:
    return f"{number:08d}{SEGMENT_SUFFIX}"


def format_spool_name(spool_id: int) -> str:
    return f"{spool_id:016x}"


class SpoolWriter:
    """The clicks of this process. No error of the disk ever reaches a redirect: what finds no room is counted instead."""

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
        self.unflushed = 0  # written, but the disk would not confirm it (`sync=always` alone asks)
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
        """Why the last turn was not kept in full, in the system's words; None while all is well."""
        return None if self._error is None else os.strerror(self._error)

    def health_problem(self) -> str | None:
        """Why clicks are not kept, or would not be if one came now: a process to which nobody comes does not notice a full disk."""
        if self._error is None:
            try:
                disk = os.statvfs(self.directory.parent)
            except OSError as exc:
                return exc.strerror
            if disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES:
                return os.strerror(errno.ENOSPC)
        return self.last_error

    def append(self, frames: list[bytes]) -> int:
        """Keep the frames by one write; the answer is how many were kept."""
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
                _logger.error("clicks are not being kept: %s", self.last_error)
        if self._saved_dropped != self.dropped:
            self._save_dropped()
        return kept

    def _set_error(self, reason: int) -> None:
        """Name a reason where no better one is known."""
        if self._error is None:
            self._error = reason

    def close(self) -> None:
        """Let go of the lock: from here on the ingester may finish and remove this spool."""
        for fd in (self._segment_fd, self._dropped_fd, self._lock_fd):
            if fd >= 0:
                os.close(fd)
        self._lock_fd = self._dropped_fd = self._segment_fd = -1

    def _open(self) -> bool:
        """Make the directory under a name nobody reads, take the lock, then show it: a reader never sees a spool that looks abandoned."""
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
            # Written in full now, so that counting on a full disk overwrites and needs no new block.
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
            self._open_next_segment()  # failing that, this segment grows on
        return True

    def _open_next_segment(self) -> bool:
        """A segment is final the moment the next one can be seen, so the next one is seen only when it can be written to."""
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
        """One write, and when it comes back short, the file is cut after the last whole frame."""
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
        """A disk that refuses to flush does not undo the write: a reader may have seen it already."""
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
            # Nothing may follow the torn bytes: this segment is given up as it stands.
            self._error = exc.errno
            os.close(self._segment_fd)
            self._segment_fd = -1
        self._segment_size += whole
        return kept

    def _retry_write(self, frames: list[bytes]) -> int:
        """A short write does not say why; the second does. A file that may not grow is succeeded by another."""
        if self._segment_fd < 0:
            return 0
        kept = self._write(frames, b"".join(frames))
        if kept < len(frames) and self._error == errno.EFBIG and self._open_next_segment():
            rest = frames[kept:]
            kept += self._write(rest, b"".join(rest))
        return kept

    def _save_dropped(self) -> None:
        """Put the number of clicks that were not kept where it outlives us; what fails now is tried again next turn."""
        line = b"%020d\n" % self.dropped
        try:
            if self._dropped_fd >= 0 and os.pwrite(self._dropped_fd, line, 0) == len(line):
                self._saved_dropped = self.dropped
        except OSError as exc:
            self._error = exc.errno


class ResponseTransport(Protocol):
    """As much of a transport as an answer needs."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class TurnBuffer:
    """The clicks and answers of one event-loop turn: one write to the spool, then the answers.

    `answers` are (transport, head) pairs in the order they must leave; a head of None closes the connection. `ending` is
    what every answer has in common, the date among it.
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
        """For answers that leave by another way: the future is done once the click is on disk, or counted as not kept."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self.waiting:
            self._call_soon(self.commit)
        self.frames.append(frame)
        self.waiting.append(future)
        return future

    def commit(self) -> None:
        """May be called early, and again: what has left is gone from the turn."""
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
                except Exception:  # one broken connection must not take its neighbours' answers
                    _logger.warning("an answer could not be sent", exc_info=True)
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
