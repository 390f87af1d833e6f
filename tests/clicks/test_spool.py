import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refract.clicks.spool.format import (
    ENTRY_CLICK,
    LINK_CLICK,
    MAX_FRAME_BYTES,
    PAGE_VIEW,
    PREFETCH,
    PRIVATE,
    SEGMENT_HEADER_BYTES,
    Click,
    decode_clicks,
    encode_frame,
)
from refract.clicks.spool.reader import (
    PendingClicks,
    SpoolBatch,
    SpoolPosition,
    SpoolState,
    count_dropped,
    count_pending,
    inspect_spool,
    list_quarantined,
    list_spools,
    lock_ingester,
    quarantine_damage,
    read_batch,
    remove_finished,
    remove_temp_spools,
    scan_frames,
)
from refract.clicks.spool.writer import SpoolWriter, TurnBuffer, format_segment_name
from tests.services_plugin import ABSENT
from tests.waiting import PATIENCE


def a_frame(target: int, agent: bytes = b"Mozilla/5.0") -> bytes:
    return encode_frame(
        LINK_CLICK,
        target,
        1_700_000_000_000_000_000 + target,
        0,
        b"\x01\x02\x03",
        agent,
        b"https://news.example/x",
        b"",
    )


def everything(
    spool: SpoolState, limit: int = 7
) -> tuple[list[Click], list[SpoolBatch], SpoolPosition]:
    got: list[Click] = []
    noted: list[SpoolBatch] = []
    position = SpoolPosition()
    while True:
        batch = read_batch(spool, position, limit)
        got += batch.clicks
        if batch.torn or batch.damage:
            noted.append(batch)
        if batch.next == position:
            return got, noted, position
        position = batch.next


def written(root: Path, number: int, segment_bytes: int = 1 << 20) -> SpoolState:
    spool = SpoolWriter(root, node="n1", segment_bytes=segment_bytes)
    for target in range(1, number + 1):
        assert spool.append([a_frame(target)]) == 1
    spool.close()
    return inspect_spool(spool.directory)


octets = st.binary(max_size=60)


@given(
    kind=st.sampled_from([LINK_CLICK, PAGE_VIEW, ENTRY_CLICK]),
    target=st.integers(-(2**63), 2**63 - 1),
    time_ns=st.integers(0, 2**63 - 1),
    network=st.sampled_from([b"", b"\x0a\x00\x01", b"\x20\x01\x0d\xb8\x00\x01"]),
    agent=st.binary(max_size=700),
    referrer=st.binary(max_size=2500),
    query=octets,
)
def test_a_frame_says_what_was_put_in_and_no_more(
    kind: int,
    target: int,
    time_ns: int,
    network: bytes,
    agent: bytes,
    referrer: bytes,
    query: bytes,
) -> None:
    data = encode_frame(kind, target, time_ns, PREFETCH, network, agent, referrer, query)

    (click,) = decode_clicks(data, 100)

    assert len(data) <= MAX_FRAME_BYTES
    assert click == Click(
        100, kind, PREFETCH, target, time_ns, network, agent[:512], click.referrer, click.campaign
    )
    assert click.referrer == referrer.split(b"?")[0].split(b"#")[0][:2048]


def test_only_the_five_campaign_words_of_a_query_are_kept() -> None:
    query = (
        b"token=secret&utm_source=mail&utm_id=7&x=utm_medium=no&utm_medium=e"
        b"&utm_campaign=%C3%A4&utm_term=t&utm_content=c&UTM_source=z"
    )

    (click,) = decode_clicks(encode_frame(LINK_CLICK, 1, 1, 0, b"", b"", b"", query), 0)

    assert (
        click.campaign
        == b"utm_source=mail&utm_medium=e&utm_campaign=%C3%A4&utm_term=t&utm_content=c"
    )


def test_a_campaign_too_long_to_keep_costs_nothing_but_itself() -> None:
    query = b"utm_source=" + b"x" * 5000 + b"&utm_medium=mail"

    (click,) = decode_clicks(encode_frame(LINK_CLICK, 1, 1, 0, b"", b"", b"", query), 0)

    assert click.campaign == b"utm_medium=mail"


def test_whoever_asked_not_to_be_tracked_leaves_time_and_target_alone() -> None:
    data = encode_frame(
        LINK_CLICK,
        5,
        9,
        PRIVATE,
        b"\x01\x02\x03",
        b"agent",
        b"https://from.example",
        b"utm_source=mail",
        language=b"language=de",
    )

    (click,) = decode_clicks(data, 0)

    assert click == Click(0, LINK_CLICK, PRIVATE, 5, 9, b"", b"", b"", b"")
    assert not any(word in data for word in (b"agent", b"mail", b"from"))


def test_an_address_that_is_not_anonymous_cannot_be_kept() -> None:
    with pytest.raises(ValueError, match="anonymous"):
        encode_frame(LINK_CLICK, 1, 1, 0, bytes(16), b"", b"", b"")


@given(at=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_flipped_bit_never_passes_for_a_click(at: int, bit: int) -> None:
    frames = [a_frame(n) for n in (1, 2, 3)]
    data = bytearray(b"".join(frames))
    at %= len(data)
    data[at] ^= 1 << bit
    sound = 0
    while sum(map(len, frames[: sound + 1])) <= at:
        sound += 1

    found = scan_frames(bytes(data), 9)

    # A flipped bit may also look like a short tail, so it is not always found to be broken.
    assert (found.clicks, found.size) == (sound, sum(map(len, frames[:sound])))


def test_clicks_come_back_in_order_across_segments(tmp_path: Path) -> None:
    spool = written(tmp_path, 50, segment_bytes=500)

    got, noted, position = everything(spool)

    assert [click.target for click in got] == list(range(1, 51))
    assert noted == []
    assert len(spool.segments) > 5
    assert position == SpoolPosition(spool.segments[-1] + 1)
    assert all(
        (spool.directory / format_segment_name(n)).stat().st_size <= 500 for n in spool.segments
    )


def test_files_are_private(tmp_path: Path) -> None:
    os.umask(os.umask(0o022))
    spool = written(tmp_path / "data" / "spool", 1)

    for path in (tmp_path / "data" / "spool", spool.directory, *spool.directory.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_every_start_has_its_own_spool(tmp_path: Path) -> None:
    assert written(tmp_path, 1).id != written(tmp_path, 1).id
    assert len(list_spools(tmp_path)) == 2


def test_a_writer_is_live_until_it_lets_go(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path, node="here")
    assert inspect_spool(spool.directory).is_live
    assert inspect_spool(spool.directory).is_live  # the check does not change the state

    spool.close()

    state = inspect_spool(spool.directory)
    assert (state.is_live, state.node, state.id) == (False, "here", spool.id)


def test_an_unfinished_frame_of_a_live_writer_is_waited_for(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path, node="n")
    spool.append([a_frame(1)])
    path = spool.directory / format_segment_name(1)
    whole = a_frame(2)
    with path.open("ab") as file:
        file.write(whole[:30])

    got, noted, position = everything(inspect_spool(spool.directory))
    assert ([click.target for click in got], noted) == ([1], [])

    with path.open("ab") as file:
        file.write(whole[30:])
    assert [
        click.target for click in read_batch(inspect_spool(spool.directory), position, 9).clicks
    ] == [2]
    spool.close()


def test_a_dead_writers_tail_may_be_torn_at_any_byte(tmp_path: Path) -> None:
    spool = written(tmp_path, 3)
    path = spool.directory / format_segment_name(1)
    content = path.read_bytes()
    size = len(a_frame(1))

    for cut in range(SEGMENT_HEADER_BYTES, len(content)):
        path.write_bytes(content[:cut])
        got, noted, position = everything(spool)
        whole = (cut - SEGMENT_HEADER_BYTES) // size
        assert [click.target for click in got] == [1, 2, 3][:whole]
        assert sum(batch.torn for batch in noted) == (cut - SEGMENT_HEADER_BYTES) % size
        assert all(batch.damage is None for batch in noted)
        assert position == SpoolPosition(2)


@settings(deadline=None, max_examples=60)
@given(at=st.integers(0, 10**6), bit=st.integers(0, 7), limit=st.integers(1, 5))
def test_damage_is_named_and_hides_nothing_before_or_behind_it(
    tmp_path_factory: pytest.TempPathFactory, at: int, bit: int, limit: int
) -> None:
    spool = written(tmp_path_factory.mktemp("spool"), 20, segment_bytes=700)
    path = spool.directory / format_segment_name(2)
    content = bytearray(path.read_bytes())
    at %= len(content)
    content[at] ^= 1 << bit
    path.write_bytes(bytes(content))
    size = len(a_frame(1))
    per_segment = (len(content) - SEGMENT_HEADER_BYTES) // size
    sound = max(0, (at - SEGMENT_HEADER_BYTES) // size)
    lost = (
        {per_segment + sound + 1}
        if at >= SEGMENT_HEADER_BYTES
        else set(range(per_segment + 1, 2 * per_segment + 1))
    )

    got, (note,), _ = everything(spool, limit)

    assert [click.target for click in got] == [n for n in range(1, 21) if n not in lost]
    assert note.damage is not None
    assert note.damage == (
        (2, SEGMENT_HEADER_BYTES + sound * size, size)
        if at >= SEGMENT_HEADER_BYTES
        else (2, 0, len(content))
    )


def test_damage_set_aside_outlives_the_spool(tmp_path: Path) -> None:
    spool = written(tmp_path, 3)
    path = spool.directory / format_segment_name(1)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    _, (note,), position = everything(spool)
    assert note.damage is not None

    quarantine_damage(spool, note.damage)
    kept = quarantine_damage(spool, note.damage)
    assert remove_finished(spool, position)

    assert list_quarantined(tmp_path) == [kept]
    assert kept.read_bytes()[:-1] == a_frame(3)[:-1]
    assert list_spools(tmp_path) == []


def test_damage_under_a_live_writer_is_told_once_the_segment_is_final(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path, node="n", segment_bytes=300)
    spool.append([a_frame(1)])
    path = spool.directory / format_segment_name(1)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    assert everything(inspect_spool(spool.directory))[:2] == ([], [])

    for target in range(2, 8):
        spool.append([a_frame(target)])
    got, (note,), _ = everything(inspect_spool(spool.directory))
    assert note.damage is not None
    assert [click.target for click in got][-1] == 7
    spool.close()


def test_a_file_of_another_spool_is_not_read_as_ours(tmp_path: Path) -> None:
    one, other = written(tmp_path, 2), written(tmp_path, 3)
    content = (other.directory / format_segment_name(1)).read_bytes()
    (one.directory / format_segment_name(1)).write_bytes(content)

    got, (note,), _ = everything(one)

    assert got == []
    assert note.damage == (1, 0, len(content))


def test_pending_is_what_lies_behind_the_position(tmp_path: Path) -> None:
    spool = written(tmp_path, 20, segment_bytes=700)
    size = len(a_frame(1))
    first = read_batch(spool, SpoolPosition(), 3)

    assert count_pending(spool, SpoolPosition()) == PendingClicks(20 * size, 20)
    assert count_pending(spool, first.next) == PendingClicks(17 * size, 17)
    assert count_pending(spool, everything(spool)[2]) == PendingClicks(0, 0)


def test_finished_segments_go_and_a_live_spool_stays(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path, node="n", segment_bytes=300)
    for target in range(9):
        spool.append([a_frame(target)])
    state = inspect_spool(spool.directory)
    _, _, position = everything(state)

    assert not remove_finished(state, position)
    assert inspect_spool(spool.directory).segments == (state.segments[-1],)

    spool.append([a_frame(99)])
    spool.close()
    state = inspect_spool(spool.directory)
    batch = read_batch(state, position, 10)
    assert [click.target for click in batch.clicks] == [99]
    while batch.next != position:
        position = batch.next
        batch = read_batch(state, position, 10)
    assert remove_finished(state, position)
    assert not spool.directory.exists()


def test_one_ingester_per_directory(tmp_path: Path) -> None:
    with lock_ingester(tmp_path) as first, lock_ingester(tmp_path) as second:
        assert (first, second) == (True, False)
    with lock_ingester(tmp_path) as third:
        assert third


def test_leftovers_of_a_process_that_never_had_a_spool_are_removed(tmp_path: Path) -> None:
    leftover = tmp_path / ".new-00000000000000ff"
    leftover.mkdir()
    (leftover / "lock").touch()

    assert list_spools(tmp_path) == []
    remove_temp_spools(tmp_path)

    assert not leftover.exists()


async def test_a_turn_writes_before_it_answers(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path, node="n")
    seen: list[tuple[bytes, int]] = []
    scheduled: list[object] = []

    class Wire:
        def write(self, data: bytes) -> None:
            seen.append((data, len(everything(inspect_spool(spool.directory))[0])))

        def close(self) -> None:
            seen.append((b"closed", -1))

    turn = TurnBuffer(spool, scheduled.append, ending=b"!")
    wire = Wire()
    for target in (1, 2):
        turn.frames.append(a_frame(target))
        turn.add_response(wire, b"to %d" % target)
    turn.add_response(wire, None)
    kept = turn.add_click(a_frame(3))
    assert (len(scheduled), seen, kept.done()) == (2, [], False)

    turn.commit()
    turn.commit()

    assert seen == [(b"to 1!", 3), (b"to 2!", 3), (b"closed", -1)]
    assert kept.done()
    spool.close()


async def test_a_broken_connection_does_not_take_its_neighbours_answer(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path, node="n")
    seen: list[bytes] = []

    class Wire:
        def __init__(self, broken: bool) -> None:
            self.broken = broken

        def write(self, data: bytes) -> None:
            if self.broken:
                raise RuntimeError("the handler is closed")
            seen.append(data)

        def close(self) -> None: ...

    turn = TurnBuffer(spool, lambda _commit: None)
    turn.add_response(Wire(broken=True), b"lost ")
    turn.add_response(Wire(broken=False), b"sent ")

    turn.commit()

    assert seen == [b"sent \r\n"]
    spool.close()


def run(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


WRITER = """
import sys
from pathlib import Path
from refract.clicks.spool.format import encode_frame
from refract.clicks.spool.writer import SpoolWriter

spool = SpoolWriter(Path(sys.argv[1]), node="n", segment_bytes=4096, sync=sys.argv[2])
number = 0
while True:
    sizes = range(number % 40 + 1)
    frames = [encode_frame(1, number + n, 1, 0, b"", b"agent" * n, b"", b"") for n in sizes]
    assert spool.append(frames) == len(frames)
    number += len(frames)
    print(number, flush=True)  # acknowledged
"""


@pytest.mark.parametrize(
    ("sync", "turns"), [("never", 1), ("never", 300), ("never", 997), ("always", 40)]
)
def test_a_killed_writer_loses_nothing_it_acknowledged(
    tmp_path: Path, sync: str, turns: int
) -> None:
    acknowledged = 0
    with run(WRITER, tmp_path, sync) as process:
        assert process.stdout is not None
        for _ in range(turns):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split("\n")[:-1]
    acknowledged = int(rest[-1]) if rest else acknowledged

    (spool,) = list_spools(tmp_path)
    got, noted, _ = everything(spool, 1000)

    assert not spool.is_live
    assert [click.target for click in got] == list(range(len(got)))
    assert len(got) >= acknowledged
    assert all(batch.damage is None for batch in noted)


FULL = """
import resource, sys
from pathlib import Path
from refract.clicks.spool.format import encode_frame
from refract.clicks.spool.writer import SpoolWriter

def turn(first, number):
    numbers = range(first, first + number)
    return spool.append([encode_frame(1, n, 1, 0, b"", b"x" * 100, b"", b"") for n in numbers])

spool = SpoolWriter(Path(sys.argv[1]), node="n")
kept = [turn(0, 3)]
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
kept.append(turn(3, 20))   # more than two files may hold
resource.setrlimit(resource.RLIMIT_FSIZE, (16, limit[1]))
kept.append(turn(23, 5))   # not even one
problem = spool.last_error
resource.setrlimit(resource.RLIMIT_FSIZE, limit)
kept.append(turn(28, 2))
print(*kept, spool.written, spool.dropped, problem, spool.last_error, sep=",")
spool.close()
"""


def test_a_full_disk_costs_whole_clicks_and_says_how_many(tmp_path: Path) -> None:
    process = run(FULL, tmp_path)
    out, _ = process.communicate(timeout=PATIENCE)
    first, second, third, fourth, kept, lost, problem, after = out.strip().split(",")

    (spool,) = list_spools(tmp_path)
    got, noted, position = everything(spool)

    assert (first, third, fourth, problem, after) == ("3", "0", "2", "File too large", "None")
    assert 0 < int(second) < 20
    assert [click.target for click in got] == [*range(3 + int(second)), 28, 29]
    assert noted == []
    assert (int(kept), int(lost)) == (len(got), 30 - len(got))
    assert count_dropped(tmp_path) == int(lost)

    remove_finished(spool, position)
    assert list_spools(tmp_path) == []
    assert count_dropped(tmp_path) == int(lost)


SMALL_DISK = """
import os, sys
from pathlib import Path
from refract.clicks.spool.format import encode_frame
from refract.clicks.spool.writer import SpoolWriter

root = Path(sys.argv[1])
spool = SpoolWriter(root, node="n", segment_bytes=16384)
kept = total = 0
while not spool.dropped:
    numbers = range(total, total + 50)
    kept += spool.append([encode_frame(1, n, 1, 0, b"", b"x" * 100, b"", b"") for n in numbers])
    total += 50
for path in sorted(root.glob("*/*.clicks"))[:1]:
    path.unlink()
again = spool.append([encode_frame(1, total, 1, 0, b"", b"", b"", b"")])
saved = (spool.directory / "not-kept").read_text().strip()
print(kept, total, spool.dropped, again, saved, sep=",")
"""


def test_clicks_are_kept_again_once_the_disk_has_room(tmp_path: Path) -> None:
    mount = (
        f"mount -t tmpfs -o size=128k none {tmp_path} && exec {sys.executable} -c '{SMALL_DISK}'"
        f" {tmp_path}"
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount], capture_output=True, text=True, check=False
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"{ABSENT}a namespace of our own, for a small disk")

    kept, total, lost, again, persisted = map(int, done.stdout.strip().split(","))

    assert kept + lost == total
    assert kept > 500
    assert again == 1
    assert persisted == lost


QUIET_ON_A_SMALL_DISK = """
import sys
from pathlib import Path
from refract.clicks.spool.writer import MIN_FREE_BYTES, SpoolWriter

root = Path(sys.argv[1])
spool = SpoolWriter(root, node="n")
print(spool.find_health_problem())
with open(root / "other", "wb") as other:
    other.write(bytes(3 * MIN_FREE_BYTES))
print(spool.find_health_problem())
"""


def test_a_full_disk_is_noticed_before_anybody_comes(tmp_path: Path) -> None:
    mount = (
        f"mount -t tmpfs -o size=3500k none {tmp_path} && exec {sys.executable} -c"
        f" '{QUIET_ON_A_SMALL_DISK}' {tmp_path}"
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount], capture_output=True, text=True, check=False
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"{ABSENT}a namespace of our own, for a small disk")

    assert done.stdout.splitlines() == ["None", "No space left on device"]


def test_a_spool_that_cannot_begin_counts_and_begins_later(tmp_path: Path) -> None:
    blocked = tmp_path / "spool"
    blocked.write_text("in the way")
    spool = SpoolWriter(blocked, node="n")

    assert spool.append([a_frame(1), a_frame(2)]) == 0
    assert (spool.dropped, spool.last_error) == (2, "File exists")

    blocked.unlink()
    assert spool.append([a_frame(3)]) == 1
    assert count_dropped(blocked) == 2
    assert [click.target for click in everything(inspect_spool(spool.directory))[0]] == [3]
    spool.close()


def test_a_last_frame_whose_length_has_changed_is_damage_and_not_a_torn_tail(
    tmp_path: Path,
) -> None:
    spool = written(tmp_path, 3)
    path = spool.directory / format_segment_name(1)
    size = len(a_frame(1))
    content = bytearray(path.read_bytes())
    content[-size] ^= 0x80
    path.write_bytes(bytes(content))

    got, (note,), _ = everything(spool, 10)

    assert [click.target for click in got] == [1, 2]
    assert note.torn == 0
    assert note.damage == (1, len(content) - size, size)
