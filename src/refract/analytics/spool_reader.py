"""The reading side of the spool: what is there, what comes next, what is finished.

Nothing here keeps state. The caller holds a `Position` per spool and moves it in the transaction that stores the clicks.
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

from refract.analytics.frames import (
    LEAST_FRAME,
    MOST_FRAME,
    SEGMENT_HEAD,
    Broken,
    Click,
    clicks,
    frame_length,
    mended,
    next_frame,
    segment_head,
)
from refract.analytics.spool import ABOUT, LOCK, NOT_KEPT, SUFFIX, UNBORN, segment_name

_READ: Final = 1 << 21  # more than the largest batch usually takes
_INGESTER: Final = "ingester.lock"
_ASIDE: Final = "set-aside"
_LOSSES: Final = "losses"
_ACKNOWLEDGED: Final = ".acknowledged"


class Position(NamedTuple):
    """The next byte to read. An event's id is its spool and the position where its frame begins."""

    segment: int = 1
    offset: int = 0


class Damage(NamedTuple):
    """Bytes that cannot be read as clicks: from a broken frame to the next whole one, or to the end of the segment."""

    segment: int
    offset: int
    size: int


class Batch(NamedTuple):
    """Clicks of one segment, and where to go on. `torn` counts the bytes of a frame that a dying writer left unfinished."""

    segment: int
    clicks: list[Click]
    next: Position
    torn: int = 0
    damage: Damage | None = None


@dataclass(frozen=True)
class SpoolState:
    """A spool as it was found. Taken before the bytes are read, so that "dead" and "final" still hold for them."""

    id: int
    directory: Path
    node: str
    live: bool
    segments: tuple[int, ...]
    not_kept: int


class Pending(NamedTuple):
    bytes: int
    clicks: int


def spools(root: Path) -> list[SpoolState]:
    """Every spool below `root`, oldest first."""
    found: list[tuple[float, SpoolState]] = []
    for directory in root.iterdir() if root.is_dir() else ():
        with suppress(FileNotFoundError, ValueError):  # finished and removed meanwhile, or not a spool
            if len(directory.name) == 16:
                state = look_at(directory)
                found.append((directory.stat().st_ctime, state))
    return [state for _, state in sorted(found, key=lambda pair: (pair[0], pair[1].id))]


def look_at(directory: Path) -> SpoolState:
    live = _is_held(directory / LOCK)
    segments = sorted(int(path.stem) for path in directory.glob("*" + SUFFIX))
    return SpoolState(int(directory.name, 16), directory, _node(directory), live, tuple(segments), _number(directory / NOT_KEPT))


def read_batch(spool: SpoolState, position: Position, limit: int) -> Batch:
    """At most `limit` clicks from `position` on. No click and the position unmoved: nothing more for now.

    A batch never crosses segments. Damage is reported once, with the position behind it; `set_aside` it before
    the position is saved.
    """
    for segment in spool.segments:
        if segment < position.segment:
            continue
        if segment > position.segment:
            position = Position(segment)
        batch = _read_segment(spool, position, limit)
        if batch.clicks or batch.torn or batch.damage or batch.next.segment == segment:
            return batch
        position = batch.next
    return Batch(position.segment, [], position)


def raw_frames(spool: SpoolState, batch: Batch) -> bytes:
    """The bytes of a batch's clicks, as they lie in the spool."""
    if not batch.clicks:
        return b""
    first, last = batch.clicks[0].offset, batch.clicks[-1].offset
    data = _read(spool.directory / segment_name(batch.segment), first, last - first + MOST_FRAME)
    return data[: last - first + frame_length(data, last - first, first)]


def pending(spool: SpoolState, position: Position) -> Pending:
    """What lies between the position and the end, counted by frame lengths alone."""
    size = number = 0
    for segment in spool.segments:
        if segment < position.segment:
            continue
        offset = max(SEGMENT_HEAD, position.offset if segment == position.segment else 0)
        with suppress(FileNotFoundError), (spool.directory / segment_name(segment)).open("rb") as file:
            file.seek(offset)
            data = file.read()
            size += len(data)
            number += _count(data)
    return Pending(size, number)


def remove_finished(spool: SpoolState, position: Position) -> bool:
    """Delete what lies wholly before the position; True when the spool itself is gone, its writer dead and everything read.

    Its count of clicks that were not kept stays with the root.
    """
    for segment in spool.segments:
        if segment < position.segment:
            (spool.directory / segment_name(segment)).unlink(missing_ok=True)
    if spool.live or any(segment >= position.segment for segment in spool.segments):
        return False
    if spool.not_kept:
        losses = spool.directory.parent / _LOSSES
        losses.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            (spool.directory / NOT_KEPT).rename(losses / spool.directory.name)
    shutil.rmtree(spool.directory)
    return True


def remove_unborn(root: Path) -> None:
    """Directories of processes that died before they had a spool."""
    for directory in root.glob(UNBORN + "*"):
        if not _is_held(directory / LOCK, absent=True):
            shutil.rmtree(directory)


def not_kept(root: Path) -> int:
    """Clicks that found no room, over all spools that ever were."""
    gone = sum(_number(path) for path in (root / _LOSSES).glob("*"))
    return gone + sum(spool.not_kept for spool in spools(root))


def set_aside(spool: SpoolState, damage: Damage) -> Path:
    """Copy the unreadable bytes to where they outlive the segment. Doing it twice is harmless."""
    aside = spool.directory.parent / _ASIDE
    aside.mkdir(mode=0o700, exist_ok=True)
    path = aside / f"{spool.directory.name}-{damage.segment:08d}-{damage.offset}.bytes"
    unfinished = path.with_suffix(".new")
    with (spool.directory / segment_name(damage.segment)).open("rb") as source:
        source.seek(damage.offset)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
            target.write(source.read(damage.size))
            target.flush()
            os.fsync(target.fileno())
    unfinished.rename(path)
    return path


def what_was_set_aside(root: Path) -> list[Path]:
    """Return the files with unreadable bytes that no operator has acknowledged yet."""
    return sorted((root / _ASIDE).glob("*.bytes"))


def acknowledged(root: Path) -> list[Path]:
    """Return the files with unreadable bytes whose loss an operator has acknowledged."""
    return sorted((root / _ASIDE).glob(f"*{_ACKNOWLEDGED}"))


def acknowledge_damage(root: Path) -> list[Path]:
    """Accept the loss of what was set aside. The files stay, under another name, as the record of it."""
    return [path.rename(path.with_suffix(_ACKNOWLEDGED)) for path in what_was_set_aside(root)]


@contextmanager
def only_ingester(root: Path) -> Iterator[bool]:
    """True for the one process that may apply this directory's spools; the kernel frees the place when it dies."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(root / _INGESTER, os.O_RDWR | os.O_CREAT, 0o600)
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
    """Whether somebody applies this directory's spools, or ships them."""
    return root.is_dir() and _is_held(root / _INGESTER)


def _read_segment(spool: SpoolState, position: Position, limit: int) -> Batch:
    segment, offset = position
    final = not spool.live or segment < spool.segments[-1]
    path = spool.directory / segment_name(segment)
    if not offset:
        if _read(path, 0, SEGMENT_HEAD) != segment_head(spool.id):
            return _end(spool, position, path.stat().st_size, damaged=True) if final else Batch(segment, [], position)
        offset = SEGMENT_HEAD
    data = _read(path, offset, _READ)
    got, broken = _parse(data, offset, limit)
    after = Position(segment, got[-1].offset + frame_length(data, got[-1].offset - offset, offset) if got else offset)
    if not final:
        return Batch(segment, got, after)  # what cannot be read yet may still be on its way
    if broken and not got:
        return _end(spool, after, path.stat().st_size, damaged=True)
    if broken or len(got) == limit or len(data) == _READ:
        return Batch(segment, got, after)
    return _end(spool, after, offset + len(data), damaged=False, got=got)


def _end(spool: SpoolState, position: Position, size: int, damaged: bool, got: list[Click] | None = None) -> Batch:
    """Leave a segment for good, or go on behind its damage.

    Only the very last frame of a dead writer can be torn; anything else unreadable is damage.
    """
    segment, offset = position
    rest = max(0, size - offset)
    onward = Position(segment + 1)
    tail = _read(spool.directory / segment_name(segment), offset, rest) if rest else b""
    if rest and (damaged or segment < spool.segments[-1] or _was_whole(tail)):
        again = next_frame(tail, 1) if offset else None  # without its head a file may be another spool's
        if again is not None:
            return Batch(segment, got or [], Position(segment, offset + again), damage=Damage(segment, offset, again))
        return Batch(segment, got or [], onward, damage=Damage(segment, offset, rest))
    return Batch(segment, got or [], onward, torn=rest)


def _was_whole(tail: bytes) -> bool:
    """Whether what looks torn is not: a frame that was written whole and whose length has changed since, or one that hides others."""
    return mended(tail) or next_frame(tail, 1) is not None


def _parse(data: bytes, base: int, limit: int) -> tuple[list[Click], Broken | None]:
    got: list[Click] = []
    try:
        for click in clicks(data, base):
            got.append(click)
            if len(got) == limit:
                break
    except Broken as error:
        return got, error
    return got, None


def _count(data: bytes) -> int:
    at = number = 0
    with suppress(Broken):
        while len(data) - at >= LEAST_FRAME:
            at += frame_length(data, at, 0)
            number += at <= len(data)
    return number


def _read(path: Path, offset: int, size: int) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, size, offset)
    finally:
        os.close(fd)


def _is_held(path: Path, absent: bool = False) -> bool:
    """Asked with a shared lock, so that two who ask do not take each other for the writer."""
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


def _node(directory: Path) -> str:
    """Empty when the file is gone: a removal that was interrupted, to be finished like any other."""
    try:
        return str(json.loads((directory / ABOUT).read_bytes())["node"])
    except FileNotFoundError:
        return ""


def _number(path: Path) -> int:
    try:
        return int(path.read_bytes() or b"0")
    except FileNotFoundError:
        return 0
