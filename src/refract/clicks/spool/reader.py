"""Reading of spools: listing, batches, removal of finished segments.

Nothing here keeps state. The caller holds a `SpoolPosition` per spool and moves it in the
transaction that stores the clicks.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from refract.clicks import compiled
from refract.clicks.spool import format as frame_format
from refract.clicks.spool.format import (
    MAX_FRAME_BYTES,
    MIN_FRAME_BYTES,
    SEGMENT_HEADER_BYTES,
    Click,
    build_segment_header,
    decode_clicks,
    find_next_frame,
    is_frame_with_bad_length,
    read_frame_length,
)
from refract.clicks.spool.writer import (
    ABOUT_FILE,
    DROPPED_FILE,
    LOCK_FILE,
    SEGMENT_SUFFIX,
    TEMP_PREFIX,
    format_segment_name,
)

_READ_BYTES: Final = 1 << 21  # more than the largest batch usually takes
_INGESTER_LOCK: Final = "ingester.lock"
_QUARANTINE_DIR: Final = "set-aside"
_DROPPED_DIR: Final = "losses"
_ACKNOWLEDGED_SUFFIX: Final = ".acknowledged"

scan_frames = compiled.choose(frame_format.scan_frames, "scan_frames")


class SpoolPosition(NamedTuple):
    """The next byte to read. An event's id is its spool and the position of its frame."""

    segment: int = 1
    offset: int = 0


class SpoolDamage(NamedTuple):
    """Bytes that cannot be read as clicks: from a broken frame to the next whole one or the end."""

    segment: int
    offset: int
    size: int


class SpoolBatch(NamedTuple):
    """Clicks of one segment, as valid frames, and the position after them.

    `torn` counts the bytes of a frame that a dying writer left unfinished.
    """

    segment: int
    next: SpoolPosition
    frames: bytes = b""
    base: int = 0
    """Where the first frame begins."""
    click_count: int = 0
    torn: int = 0
    damage: SpoolDamage | None = None

    def skip_to(self, position: SpoolPosition) -> "SpoolBatch":
        """Return the batch without the clicks before this position."""
        at = left_out = 0
        while at < len(self.frames) and SpoolPosition(self.segment, self.base + at) < position:
            at += read_frame_length(self.frames, at)
            left_out += 1
        return self._replace(
            frames=self.frames[at:], base=self.base + at, click_count=self.click_count - left_out
        )

    @property
    def clicks(self) -> list[Click]:
        """Return the decoded clicks."""
        return list(decode_clicks(self.frames, self.base))


@dataclass(frozen=True)
class SpoolState:
    """A spool as it was found.

    Taken before the bytes are read, so that "dead" and "final" still hold for them.
    """

    id: int
    directory: Path
    node: str
    is_live: bool
    segments: tuple[int, ...]
    dropped: int


class PendingClicks(NamedTuple):
    bytes: int
    clicks: int


def list_spools(root: Path) -> list[SpoolState]:
    """Return every spool below `root`, oldest first."""
    found: list[tuple[float, SpoolState]] = []
    for directory in root.iterdir() if root.is_dir() else ():
        # Finished and removed meanwhile, or not a spool.
        with suppress(FileNotFoundError, ValueError):
            if len(directory.name) == 16:
                state = inspect_spool(directory)
                found.append((directory.stat().st_ctime, state))
    return [state for _, state in sorted(found, key=lambda pair: (pair[0], pair[1].id))]


def inspect_spool(directory: Path) -> SpoolState:
    live = _is_locked(directory / LOCK_FILE)
    segments = sorted(int(path.stem) for path in directory.glob("*" + SEGMENT_SUFFIX))
    return SpoolState(
        int(directory.name, 16),
        directory,
        _read_node_name(directory),
        live,
        tuple(segments),
        _read_number(directory / DROPPED_FILE),
    )


def read_batch(spool: SpoolState, position: SpoolPosition, limit: int) -> SpoolBatch:
    """Return at most `limit` clicks from `position` on.

    No click and an unmoved position mean: nothing more for now. A batch never crosses segments.
    Damage is reported once, with the position behind it; call `quarantine_damage` before saving the
    position.
    """
    for segment in spool.segments:
        if segment < position.segment:
            continue
        if segment > position.segment:
            position = SpoolPosition(segment)
        batch = _read_segment(spool, position, limit)
        if batch.click_count or batch.torn or batch.damage or batch.next.segment == segment:
            return batch
        position = batch.next
    return SpoolBatch(position.segment, position)


def count_pending(spool: SpoolState, position: SpoolPosition) -> PendingClicks:
    """Count what lies between the position and the end, by frame lengths alone."""
    size = number = 0
    for segment in spool.segments:
        if segment < position.segment:
            continue
        offset = max(SEGMENT_HEADER_BYTES, position.offset if segment == position.segment else 0)
        with (
            suppress(FileNotFoundError),
            (spool.directory / format_segment_name(segment)).open("rb") as file,
        ):
            file.seek(offset)
            data = file.read()
            size += len(data)
            number += _count_frames(data)
    return PendingClicks(size, number)


def remove_finished(spool: SpoolState, position: SpoolPosition) -> bool:
    """Delete segments before the position; return True when the whole spool was removed.

    A spool is removed when its writer is dead and everything was read. Its count of dropped clicks
    is moved to the root directory.
    """
    for segment in spool.segments:
        if segment < position.segment:
            (spool.directory / format_segment_name(segment)).unlink(missing_ok=True)
    if spool.is_live or any(segment >= position.segment for segment in spool.segments):
        return False
    if spool.dropped:
        losses = spool.directory.parent / _DROPPED_DIR
        losses.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            (spool.directory / DROPPED_FILE).rename(losses / spool.directory.name)
    shutil.rmtree(spool.directory)
    return True


def remove_temp_spools(root: Path) -> None:
    """Delete directories of processes that died before their spool was complete."""
    for directory in root.glob(TEMP_PREFIX + "*"):
        if not _is_locked(directory / LOCK_FILE, absent=True):
            shutil.rmtree(directory)


def count_dropped(root: Path) -> int:
    """Return the number of clicks dropped for lack of space, over all spools that ever existed."""
    gone = sum(_read_number(path) for path in (root / _DROPPED_DIR).glob("*"))
    return gone + sum(spool.dropped for spool in list_spools(root))


def quarantine_damage(spool: SpoolState, damage: SpoolDamage) -> Path:
    """Copy unreadable bytes to a file that outlives the segment. Idempotent."""
    aside = spool.directory.parent / _QUARANTINE_DIR
    aside.mkdir(mode=0o700, exist_ok=True)
    path = aside / f"{spool.directory.name}-{damage.segment:08d}-{damage.offset}.bytes"
    unfinished = path.with_suffix(".new")
    with (spool.directory / format_segment_name(damage.segment)).open("rb") as source:
        source.seek(damage.offset)
        with os.fdopen(
            os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
        ) as target:
            target.write(source.read(damage.size))
            target.flush()
            os.fsync(target.fileno())
    unfinished.rename(path)
    return path


def list_quarantined(root: Path) -> list[Path]:
    """Return the files with unreadable bytes that no operator has acknowledged yet."""
    return sorted((root / _QUARANTINE_DIR).glob("*.bytes"))


def list_acknowledged(root: Path) -> list[Path]:
    """Return the files with unreadable bytes whose loss an operator has acknowledged."""
    return sorted((root / _QUARANTINE_DIR).glob(f"*{_ACKNOWLEDGED_SUFFIX}"))


def acknowledge_damage(root: Path) -> list[Path]:
    """Accept the loss of quarantined bytes. The files stay, renamed, as a record."""
    return [path.rename(path.with_suffix(_ACKNOWLEDGED_SUFFIX)) for path in list_quarantined(root)]


@contextmanager
def lock_ingester(root: Path) -> Iterator[bool]:
    """Yield True to the only process that may apply this directory's spools.

    The kernel releases the lock when the process dies.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(root / _INGESTER_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def has_ingester(root: Path) -> bool:
    """Return whether a process applies or ships this directory's spools."""
    return root.is_dir() and _is_locked(root / _INGESTER_LOCK)


def _read_segment(spool: SpoolState, position: SpoolPosition, limit: int) -> SpoolBatch:
    segment, offset = position
    final = not spool.is_live or segment < spool.segments[-1]
    path = spool.directory / format_segment_name(segment)
    if not offset:
        if _read_bytes(path, 0, SEGMENT_HEADER_BYTES) != build_segment_header(spool.id):
            return (
                _finish_segment(
                    spool, SpoolBatch(segment, position), path.stat().st_size, damaged=True
                )
                if final
                else SpoolBatch(segment, position)
            )
        offset = SEGMENT_HEADER_BYTES
    data = _read_bytes(path, offset, _READ_BYTES)
    found = scan_frames(data, limit)
    after = SpoolPosition(segment, offset + found.size)
    batch = SpoolBatch(segment, after, data[: found.size], offset, found.clicks)
    if not final:
        return batch  # unreadable bytes may still be on their way
    if found.is_broken and not found.clicks:
        return _finish_segment(spool, batch, path.stat().st_size, damaged=True)
    if found.is_broken or found.clicks == limit or len(data) == _READ_BYTES:
        return batch
    return _finish_segment(spool, batch, offset + len(data), damaged=False)


def _finish_segment(spool: SpoolState, batch: SpoolBatch, size: int, damaged: bool) -> SpoolBatch:
    """Finish a segment with this batch, or continue behind its damage.

    Only the very last frame of a dead writer can be torn; anything else unreadable is damage.
    """
    segment, offset = batch.next
    rest = max(0, size - offset)
    onward = SpoolPosition(segment + 1)
    tail = (
        _read_bytes(spool.directory / format_segment_name(segment), offset, rest) if rest else b""
    )
    if rest and (damaged or segment < spool.segments[-1] or _has_whole_frame(tail)):
        # Without its header a file may be another spool's.
        again = find_next_frame(tail, 1) if offset else None
        if again is not None:
            return batch._replace(
                next=SpoolPosition(segment, offset + again),
                damage=SpoolDamage(segment, offset, again),
            )
        return batch._replace(next=onward, damage=SpoolDamage(segment, offset, rest))
    return batch._replace(next=onward, torn=rest)


def _has_whole_frame(tail: bytes) -> bool:
    """Return whether seemingly torn bytes hold a whole frame.

    That is a frame whose length field has changed since it was written, or one that hides others.
    """
    return is_frame_with_bad_length(tail) or find_next_frame(tail, 1) is not None


def _count_frames(data: bytes) -> int:
    at = number = 0
    while len(data) - at >= MIN_FRAME_BYTES:
        length = read_frame_length(data, at)
        if not MIN_FRAME_BYTES <= length <= MAX_FRAME_BYTES:
            break
        at += length
        number += at <= len(data)
    return number


def _read_bytes(path: Path, offset: int, size: int) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, size, offset)
    finally:
        os.close(fd)


def _is_locked(path: Path, absent: bool = False) -> bool:
    """Return whether a writer holds the lock.

    Tested with a shared lock, so that two readers do not take each other for the writer.
    """
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return absent
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _read_node_name(directory: Path) -> str:
    """Return the node's name; empty when the file is gone, after an interrupted removal."""
    try:
        return str(json.loads((directory / ABOUT_FILE).read_bytes())["node"])
    except FileNotFoundError:
        return ""


def _read_number(path: Path) -> int:
    try:
        return int(path.read_bytes() or b"0")
    except FileNotFoundError:
        return 0
