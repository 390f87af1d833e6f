"""The harness itself: a checker that finds nothing wrong must be able to find something wrong."""

import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from proofs.harness import checker, proc
from proofs.harness.journal import Journal, Kind, Outcome, Record, read
from proofs.harness.load import Bounds, Load, clicking, under
from proofs.harness.nemesis import Fault, Nemesis
from proofs.harness.proxy import proxied
from proofs.harness.report import Report
from proofs.harness.wire import Cut, Wire, get
from tools.services import Services

FOUND = b"HTTP/1.1 302 Found\r\nlocation: https://example.com/\r\ncontent-length: 0\r\n\r\n"


def _click(
    number: int,
    outcome: Outcome = Outcome.ANSWERED,
    status: int = 302,
    began: float = 0.0,
    ended: float = 1.0,
) -> Record:
    return Record(
        number, began, ended, 0, status if outcome == Outcome.ANSWERED else 0, Kind.CLICK, outcome
    )


def test_the_checker_tells_lost_duplicate_in_flight_and_unexplained_apart() -> None:
    records = [
        _click(1),
        _click(2),
        _click(3),
        _click(4, Outcome.CUT),
        _click(5, Outcome.CROSSED),
        _click(6, status=503),
        _click(7, Outcome.CUT),
    ]
    stored = Counter({1: 1, 2: 2, 4: 1, 6: 1, 99: 1})

    found = checker.tally(records, Kind.CLICK, stored)

    assert found.acknowledged == 3
    assert (found.lost, found.duplicates, found.in_flight, found.unexplained) == (1, 1, 1, 2)
    assert found.examples == (2, 3, 6, 99)


def test_a_write_is_acknowledged_by_any_of_its_attempts() -> None:
    cut = Record(1, 0.0, 1.0, 0, 0, Kind.WRITE, Outcome.CUT)
    answered = Record(1, 1.0, 2.0, 0, 201, Kind.WRITE, Outcome.ANSWERED)

    assert checker.tally([cut, answered], Kind.WRITE, Counter()).lost == 1
    assert checker.tally([cut, answered], Kind.WRITE, Counter({1: 1})).lost == 0
    assert checker.tally([cut, answered], Kind.WRITE, Counter({1: 2})).duplicates == 1


def test_a_kill_is_mid_request_when_it_cut_somebody_off() -> None:
    kills = [Fault("SIGKILL", "server", 1, at, at + 0.01) for at in (1.0, 2.0, 3.0)]
    records = [
        _click(1, Outcome.CUT, began=0.9, ended=1.1),
        _click(2, Outcome.CUT, began=2.1, ended=2.2),
        _click(3, began=2.9, ended=3.1),
    ]

    assert checker.mid_request(kills, records) == 1


def test_serving_again_is_counted_from_the_kill_to_an_answer_of_somebody_who_asked_after_it() -> (
    None
):
    kill = Fault("SIGKILL", "server", 1, 1.0, 1.0)
    records = [
        _click(1, began=0.9, ended=1.05),
        _click(2, Outcome.CUT, began=1.1, ended=1.2),
        _click(3, began=1.5, ended=1.75),
    ]

    assert checker.serving_again([kill], records) == [0.75]
    assert checker.serving_again([kill], records[:2]) == [float("inf")]


def test_the_journal_gives_back_what_was_noted_and_survives_a_torn_end(tmp_path: Path) -> None:
    with Journal(tmp_path / "requests") as journal:
        journal.note(_click(journal.new_id()))
        journal.note(_click(journal.new_id(), Outcome.LATE))
        assert [record.id for record in journal.read()] == [1, 2]
    with journal.path.open("ab") as file:
        file.write(b"torn")
    assert [record.outcome for record in read(journal.path)] == [Outcome.ANSWERED, Outcome.LATE]


def test_a_report_fails_by_its_bars_and_a_test_forgives_those_about_time() -> None:
    report = Report("x", 1)
    report.say("figure", 7)
    report.none("losses", 0)
    report.bar("seconds", 3, "≤ 2 s", held=False, timed=True)
    assert not report.held
    assert report.broken == []
    report.none("losses", 2)
    assert report.broken == ["losses: 2 (promised: 0)"]
    assert "BROKEN" in str(report)


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def _toy(handle: Handler) -> AsyncIterator[int]:
    """A server for one test; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await handle(reader, writer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.sleep(0.05)  # for connections to be seen off


def _answering(behaviour: str) -> Handler:
    """Answers one request, more or less, and then does as it is told."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write({"nothing": b"", "half": FOUND[:20]}.get(behaviour, FOUND))
        if behaviour == "again":
            await reader.readuntil(b"\r\n\r\n")

    return handle


@pytest.mark.parametrize(
    ("behaviour", "outcomes"),
    [
        ("nothing", {Outcome.CUT}),
        ("half", {Outcome.CUT}),
        ("once", {Outcome.ANSWERED, Outcome.CROSSED}),
        ("again", {Outcome.ANSWERED, Outcome.CROSSED}),
    ],
)
async def test_the_load_notes_how_each_request_ended(
    tmp_path: Path, behaviour: str, outcomes: set[Outcome]
) -> None:
    async with _toy(_answering(behaviour)) as port:
        with Journal(tmp_path / "requests") as journal:
            await Load(port, journal, clicking(["a"]), Bounds(1, 6, 10)).run()
            records = list(journal.read())

    assert len(records) == 6
    assert {Outcome(record.outcome) for record in records} <= outcomes
    assert Outcome(records[0].outcome) in outcomes - {Outcome.CROSSED}


async def test_the_load_ends_by_itself_and_notes_that_nobody_listens(tmp_path: Path) -> None:
    with Journal(tmp_path / "requests") as journal:
        async with under(Load(1, journal, clicking(["a"]), Bounds(2, 1_000_000, 0.3))):
            await asyncio.sleep(0.5)
        assert {record.outcome for record in journal.read()} == {Outcome.REFUSED}


async def test_a_nemesis_stops_wakes_and_kills_and_notes_it(tmp_path: Path) -> None:
    victim = await asyncio.create_subprocess_exec(sys.executable, "-c", "while True: pass")
    nemesis = Nemesis(1, tmp_path / "faults.jsonl")
    pausing = asyncio.create_task(nemesis.pause(victim.pid, "victim", 0.5))
    await asyncio.sleep(0.3)
    assert proc.state(victim.pid) == "T"
    await pausing
    assert proc.state(victim.pid) != "T"
    before = time.monotonic()
    at = await nemesis.kill("victim", victim.pid)
    assert before <= at <= time.monotonic()
    assert await victim.wait() == -9
    assert [(fault.kind, fault.busy) for fault in nemesis.faults] == [
        ("SIGSTOP", False),
        ("SIGKILL", True),
    ]
    assert len((tmp_path / "faults.jsonl").read_text().splitlines()) == 2


async def test_a_nemesis_restarts_servers(tmp_path: Path, private_services: Services) -> None:
    server = private_services.redis
    before = server.pid
    nemesis = Nemesis(1, tmp_path / "faults.jsonl")
    await nemesis.restart(server, hard=True)
    assert server.running
    assert server.pid != before
    assert nemesis.faults[0].until > nemesis.faults[0].at


async def test_a_cut_wire_swallows_the_bus_and_nothing_else() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)

    async with _toy(echo) as port, proxied(f"postgresql://u@127.0.0.1:{port}/d") as (proxy, url):
        there = int(url.rpartition(":")[2].partition("/")[0])
        bus, other = (
            await asyncio.open_connection("127.0.0.1", there),
            await asyncio.open_connection("127.0.0.1", there),
        )
        for (reader, writer), word in (
            (bus, b"LISTEN refract_links"),
            (other, b"INSERT INTO link_feed"),
        ):
            writer.write(word)
            assert await reader.read(1000) == word
        proxy.cut = "bus"
        for _, writer in (bus, other):
            writer.write(b"x")
        assert await other[0].read(10) == b"x"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await bus[0].read(10)
        proxy.heal()
        with contextlib.suppress(ConnectionError):
            assert await bus[0].read(10) == b""
        for _, writer in (bus, other):
            writer.close()


async def test_a_wire_gives_up_in_time() -> None:
    async def silence(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with _toy(silence) as port:
        wire = await Wire.open(port)
        with pytest.raises(TimeoutError):
            await wire.ask(get("/"), 0.1)
        await wire.lost
        with pytest.raises(Cut):
            await wire.ask(get("/"), 0.1)
