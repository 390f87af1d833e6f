"""The protocol of redirecting processes: hits, clicks, limits and fallbacks."""

import asyncio
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

import pytest

from refract.clicks.spool.format import ENTRY_CLICK, PREFETCH, PRIVATE
from refract.core.ip_addresses import TrustedProxies
from refract.redirect.responses import build_redirect_headers as redirect_headers
from refract.web.connections import ConnectionLimits, get_next_tick
from tests.waiting import eventually

Run = Callable[..., None]
Open = Callable[..., Any]

TAIL = b"x: y\r\n\r\n"
ONE = (
    b"HTTP/1.1 302 Found\r\nlocation: https://example.com/1\r\ncache-control: private, no-store\r\n"
    + TAIL
)
TWO = (
    b"HTTP/1.1 308 Permanent Redirect\r\nlocation: https://example.com/2\r\ncache-control: private,"
    b" max-age=30\r\n" + TAIL
)
ONE_CLOSED = ONE.replace(TAIL, b"connection: close\r\n" + TAIL)


def get(path: bytes, *lines: bytes, method: bytes = b"GET", version: bytes = b"1.1") -> bytes:
    return (
        b"%b %b HTTP/%b\r\nHost: x\r\n" % (method, path, version)
        + b"".join(line + b"\r\n" for line in lines)
        + b"\r\n"
    )


def fill(here: Any) -> None:
    here.fill(b"/one", here.entry(1))
    here.fill(b"/two", here.entry(2, status=308))


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


ONCE = get(b"/one", b"User-Agent: t")
HITS: dict[str, tuple[list[bytes], bytes, bool, list[int]]] = {
    # what is sent, what comes back, whether the connection is closed, whose clicks are counted
    "plain": ([get(b"/one")], ONE, False, [1]),
    "permanent": ([get(b"/two")], TWO, False, [2]),
    "query": ([get(b"/one?x=1")], ONE, False, [1]),
    "head": ([get(b"/one", method=b"HEAD")], ONE, False, []),
    "http 1.0": ([get(b"/one", version=b"1.0")], ONE_CLOSED, True, [1]),
    "http 1.0 keep-alive": (
        [get(b"/one", b"Connection: keep-alive", version=b"1.0")],
        ONE_CLOSED,
        True,
        [1],
    ),
    "close": ([get(b"/one", b"Connection: close")], ONE_CLOSED, True, [1]),
    "close among others": ([get(b"/one", b"Connection: x, CLOSE")], ONE_CLOSED, True, [1]),
    "keep-alive": ([get(b"/one", b"Connection: keep-alive")], ONE, False, [1]),
    "pipelined": ([get(b"/one") + get(b"/two") + get(b"/one")], ONE + TWO + ONE, False, [1, 2, 1]),
    "pipelined with head": ([get(b"/one", method=b"HEAD") + get(b"/two")], ONE + TWO, False, [2]),
    "one after the other": ([get(b"/one"), get(b"/two")], ONE + TWO, False, [1, 2]),
    "bytewise": (bytewise(ONCE), ONE, False, [1]),
    "split between two": ([ONCE + ONCE[:20], ONCE[20:]], ONE + ONE, False, [1, 1]),
    "nothing is heard after close": (
        [get(b"/one", b"Connection: close") + get(b"/two") + get(b"/a")],
        ONE_CLOSED,
        True,
        [1],
    ),
    "nothing is heard after 1.0": (
        [get(b"/one", b"Connection: keep-alive", version=b"1.0") + get(b"/two")],
        ONE_CLOSED,
        True,
        [1],
    ),
}


@pytest.mark.parametrize("name", HITS)
def test_a_hit_is_answered_from_the_table(run: Run, station: Open, name: str) -> None:
    chunks, expected, closes, counted = HITS[name]

    async def story() -> None:
        async with station() as here:
            fill(here)
            client = await here.connect()
            await client.send(*chunks)
            await client.read(len(expected))
            if closes:
                await client.read()
            assert client.got == expected
            assert client.closed == closes
            assert [click.target for click in here.clicks()] == counted

    run(story())


def test_misses_and_hits_on_one_connection_keep_their_order(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station() as here:
            fill(here)
            client = await here.connect()
            await client.send(
                get(b"/one") + get(b"/slow") + get(b"/two") + get(b"/b"), get(b"/c") + get(b"/one")
            )
            await client.read(seconds=0.5)
            said = client.got
            order = [
                said.index(b'"path": "/%b"' % name)
                for name in (b"slow", b"two", b"b", b"c", b"one")
            ]
            assert said.startswith(ONE)
            assert order == sorted(order)
            await client.send(get(b"/two"))
            await client.read(len(said) + len(TWO))
            assert client.got == said + TWO  # idle again: back in the lane

    run(story())


def test_a_bad_request_does_not_swallow_the_answer_before_it(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station() as here:
            fill(here)
            client = await here.connect()
            await client.send(get(b"/one") + get(b"/two") + b"rubbish\r\n\r\n")
            await client.read()
            assert client.got.startswith(ONE + TWO + b"HTTP/1.1 400 ")
            assert client.closed
            assert len(here.clicks()) == 2

    run(story())


def test_a_client_that_says_goodbye_in_one_breath_is_still_answered(
    run: Run, station: Open
) -> None:
    async def story() -> None:
        async with station() as here:
            fill(here)
            client = await here.connect()
            await client.send(get(b"/one"))
            await client.read(len(ONE))
            (lane,) = here.connections
            lane.data_received(get(b"/two"))
            lane.eof_received()  # the transport closes after this, whatever the turn still holds
            lane.transport.close()
            await client.read()
            assert client.got == ONE + TWO

    run(story())


def test_shutting_down_sends_what_is_due(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station() as here:
            fill(here)
            client = await here.connect()
            await client.send(get(b"/one"))
            await client.read(len(ONE))
            (lane,) = here.connections
            lane.data_received(get(b"/two"))  # in the turn, not yet sent
            assert len(here.clicks()) == 1
            lane.shutdown()
            await client.read()
            assert client.got == ONE + TWO
            assert client.closed

    run(story())


def test_draining_closes_each_connection_with_its_next_answer(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station() as here:
            fill(here)
            client = await here.connect()
            here.traffic.is_draining = True
            await client.send(get(b"/one") + get(b"/two") + get(b"/a"))
            await client.read()
            assert client.got == ONE_CLOSED
            assert client.closed
            assert [click.target for click in here.clicks()] == [
                1
            ]  # what was not heard is not counted
            assert here.state.total_requests == 0  # nor handed to the application

    run(story())


def test_the_click_is_on_disk_before_the_answer_leaves(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station() as here:
            fill(here)
            client = await here.connect()
            for number in range(1, 20):
                await client.send(get(b"/one"))
                await client.read(number * len(ONE))
                assert len(here.clicks()) == number

    run(story())


def test_one_turn_is_one_write(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station() as here:
            fill(here)
            clients = [await here.connect() for _ in range(5)]
            writes: list[int] = []
            append = here.spool.append

            def counted(frames: list[bytes]) -> int:
                writes.append(len(frames))
                return int(append(frames))

            here.spool.append = counted
            for client in clients:
                await client.send(get(b"/one"))
                await client.read(len(ONE))
            lanes = here.connections
            before = len(writes)
            for lane in lanes:
                lane.data_received(get(b"/one") * 2)
            await asyncio.sleep(0.01)
            assert writes[before:] == [10]

    run(story())


def test_what_a_click_remembers(run: Run, station: Open) -> None:
    request = get(
        b"/one?utm_source=a&key=secret&utm_term=b",
        b"User-Agent: Firefox",
        b"Referer: https://from.example/p?q=1#f",
    )

    async def story() -> None:
        async with station() as here:
            here.fill(b"/one", here.entry(7, kind=ENTRY_CLICK))
            client = await here.connect()
            await client.send(request)
            await client.read(50)
            (click,) = here.clicks()
            assert (click.kind, click.target, click.flags) == (ENTRY_CLICK, 7, 0)
            assert (click.network, click.agent, click.referrer) == (
                b"\x7f\x00\x00",
                b"Firefox",
                b"https://from.example/p",
            )
            assert click.campaign == b"utm_source=a&utm_term=b"

    run(story())


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        (b"Sec-Purpose: prefetch;prerender", PREFETCH),
        (b"Purpose: prefetch", PREFETCH),
        (b"X-Moz: prefetch", PREFETCH),
        (b"X-Purpose: preview", PREFETCH),
        (b"Purpose: something", 0),
        (b"Sec-GPC: 1", PRIVATE),
        (b"DNT: 1", PRIVATE),
        (b"DNT: 0", 0),
    ],
)
def test_signals_of_the_browser_are_heard(run: Run, station: Open, line: bytes, flags: int) -> None:
    async def story() -> None:
        async with station() as here:
            fill(here)
            client = await here.connect()
            await client.send(get(b"/one", line, b"User-Agent: a"))
            await client.read(len(ONE))
            (click,) = here.clicks()
            assert click.flags == flags
            assert (click.network, click.agent) == (
                (b"", b"") if flags & PRIVATE else (b"\x7f\x00\x00", b"a")
            )

    run(story())


@pytest.mark.parametrize(
    ("trusted", "lines", "network"),
    [
        ([], [b"X-Forwarded-For: 203.0.113.7"], b"\x7f\x00\x00"),
        (["127.0.0.0/8"], [b"X-Forwarded-For: 198.51.100.1, 203.0.113.7"], b"\xcb\x00\x71"),
        (
            ["127.0.0.0/8", "203.0.113.0/24"],
            [b"X-Forwarded-For: 198.51.100.1", b"X-Forwarded-For: 203.0.113.7"],
            b"\xc6\x33\x64",
        ),
        (["127.0.0.0/8"], [b"X-Forwarded-For: 2001:db8:1:2::7"], b"\x20\x01\x0d\xb8\x00\x01"),
        (["127.0.0.0/8"], [], b"\x7f\x00\x00"),
    ],
)
def test_the_client_behind_a_trusted_proxy_is_counted(
    run: Run, station: Open, trusted: list[str], lines: list[bytes], network: bytes
) -> None:
    async def story() -> None:
        async with station(networks=TrustedProxies(map(ip_network, trusted))) as here:
            fill(here)
            client = await here.connect()
            await client.send(get(b"/one", *lines))
            await client.read(len(ONE))
            assert [click.network for click in here.clicks()] == [network]

    run(story())


def test_expiry_is_honoured_by_the_clock_alone(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station() as here:
            here.fill(b"/one", here.entry(1, expires_ns=1_000))
            now = [999]
            here.traffic.now_ns = lambda: now[0]
            client = await here.connect()
            await client.send(get(b"/one"))
            await client.read(len(ONE))
            assert client.got == ONE
            now[0] = 1_000
            await client.send(get(b"/one"))
            await client.read(len(ONE) + 1)
            assert client.got[len(ONE) :].startswith(b"HTTP/1.1 200 ")  # the application's business

    run(story())


def test_a_hit_does_not_count_once_the_news_are_overdue(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station() as here:
            here.fill(b"/one", here.entry(1))
            now = [999]
            here.traffic.now_ns = lambda: now[0]
            here.table.trusted_until_ns = 1_000
            client = await here.connect()
            await client.send(get(b"/one"))
            await client.read(len(ONE))
            assert client.got == ONE
            now[0] = 1_000
            await client.send(get(b"/one"))
            await client.read(len(ONE) + 1)
            assert client.got[len(ONE) :].startswith(
                b"HTTP/1.1 200 "
            )  # the application asks the others
            assert len(here.clicks()) == 1

    run(story())


def test_a_request_that_came_before_its_connection_was_found_idle_is_answered(
    run: Run, station: Open
) -> None:
    """As after a suspended process: timers are late, and run first."""

    async def story() -> None:
        async with station(limits=ConnectionLimits(idle_seconds=1)) as here:
            here.fill(b"/one", here.entry(1))
            client = await here.connect()
            await client.send(get(b"/one"))
            await client.read(len(ONE))
            client.writer.write(get(b"/one"))  # has arrived by the next line, and nobody has looked
            here.traffic.sweep()
            here.connections[0].timeout_keep_alive_handler()
            await client.read(len(ONE) + 1)
            assert client.got.count(b"302 Found") == 2

    run(story())


def test_the_date_is_renewed_by_the_sweep(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station() as here:
            fill(here)
            here.traffic.sweep()
            client = await here.connect()
            await client.send(get(b"/one"))
            await client.read(100)
            assert b"\r\ndate: " in client.got
            assert client.got.endswith(b" GMT\r\n\r\n")
            assert b"x-request-id" not in client.got.lower()
            for name, value in redirect_headers(302, b"https://example.com/1"):
                assert b"\r\n%b: %b\r\n" % (name, value) in client.got

    run(story())


LARGE = [
    ("in one piece", [get(b"/one", b"X-Large: " + b"x" * 70_000)]),
    ("of a miss", [get(b"/a", b"X-Large: " + b"x" * 70_000)]),
    (
        "in pieces",
        [
            get(b"/one", b"X-Large: " + b"x" * 70_000)[at : at + 9_000]
            for at in range(0, 70_000, 9_000)
        ],
    ),
    ("unfinished", [b"GET /one HTTP/1.1\r\n"] + [b"X: " + b"y" * 20_000 + b"\r\n"] * 4),
    ("a path", [b"GET /" + b"p" * 70_000]),
    ("many small headers", [b"GET /one HTTP/1.1\r\n" + b"A: b\r\n" * 12_000]),
]


@pytest.mark.parametrize("chunks", [chunks for _, chunks in LARGE], ids=[name for name, _ in LARGE])
def test_a_head_that_is_too_large_is_refused(run: Run, station: Open, chunks: list[bytes]) -> None:
    async def story() -> None:
        async with station() as here:
            fill(here)
            client = await here.connect()
            client.writer.write(b"".join(chunks) if len(chunks) == 1 else get(b"/two"))
            for chunk in chunks if len(chunks) > 1 else ():
                client.writer.write(chunk)
                await asyncio.sleep(0.01)
            await client.read()
            first = b"" if len(chunks) == 1 else TWO
            assert client.got.startswith(first + b"HTTP/1.1 431 ")
            assert client.got.count(b"HTTP/1.1") == 1 + len(first and [1])
            assert client.closed

    run(story())


def test_many_small_requests_in_one_piece_are_not_a_large_head(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station() as here:
            fill(here)
            client = await here.connect()
            request = get(b"/one", b"X: " + b"x" * 900)
            data = request * 200 + request[:500]
            await client.send(data, request[500:])
            await client.read(201 * len(ONE))
            assert client.got == 201 * ONE
            assert len(here.clicks()) == 201

    run(story())


def test_the_size_of_one_head_is_not_held_against_the_next(run: Run, station: Open) -> None:
    large = get(b"/one", b"X: " + b"x" * 40_000)

    async def story() -> None:
        async with station() as here:
            fill(here)
            client = await here.connect()
            await client.send(large[:-1], large[-1:] + large[:39_000], large[39_000:])
            await client.read(2 * len(ONE))
            assert client.got == 2 * ONE

    run(story())


SLOW = [
    ("nothing sent", [], 3),
    ("head unfinished", [b"GET /one HTTP/1.1\r\nHost"], 3),
    ("second head unfinished", [get(b"/one"), b"GET /"], 3),
    ("body unfinished", [get(b"/a", b"Content-Length: 9", method=b"POST") + b"x"], 4),
    ("idle after a hit", [get(b"/one")], 2),
    ("idle after a miss", [get(b"/a")], 2),
]


def test_delays_of_the_sweep_do_not_add_up() -> None:
    due = 100.0
    for _ in range(10):
        due = get_next_tick(due, now=due + 0.4)
    assert due == 110.0


def test_after_a_long_sleep_the_sweep_begins_anew_instead_of_catching_up() -> None:
    assert get_next_tick(100.0, now=130.0) == 131.0


@pytest.mark.parametrize(
    ("chunks", "sweeps"),
    [(chunks, sweeps) for _, chunks, sweeps in SLOW],
    ids=[name for name, *_ in SLOW],
)
def test_slow_clients_are_closed_by_the_sweep(
    run: Run, station: Open, chunks: list[bytes], sweeps: int
) -> None:
    limits = ConnectionLimits(head_seconds=3, body_seconds=4, body_rate=1000, idle_seconds=2)

    async def story() -> None:
        async with station(limits=limits) as here:
            fill(here)
            client = await here.connect()
            await client.send(*chunks)
            await client.read(seconds=0.1)
            for _ in range(sweeps - 1):
                here.traffic.sweep()
            await client.read(seconds=0.1)
            assert not client.closed
            here.traffic.sweep()
            await client.read()
            assert client.closed
            await asyncio.sleep(0.01)
            assert here.traffic.open == set()

    run(story())


def test_a_byte_now_and_then_does_not_buy_time(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station(limits=ConnectionLimits(head_seconds=5)) as here:
            client = await here.connect()
            for byte in bytewise(b"GET / "):
                if client.closed:
                    break
                await client.send(byte)
                here.traffic.sweep()
            await client.read(seconds=1)
            assert client.closed

    run(story())


def test_a_working_application_has_all_the_time_it_needs(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station(
            limits=ConnectionLimits(idle_seconds=1, head_seconds=1, body_seconds=1)
        ) as here:
            client = await here.connect()
            await client.send(get(b"/slow"))
            for _ in range(5):
                here.traffic.sweep()
            await client.read(10)
            assert client.got.startswith(b"HTTP/1.1 200")

    run(story())


def test_a_large_body_that_keeps_coming_is_not_slow(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station(limits=ConnectionLimits(body_seconds=2, body_rate=1000)) as here:
            client = await here.connect()
            await client.send(get(b"/a", b"Content-Length: 20000", method=b"POST"))
            for _ in range(10):
                await client.send(b"x" * 2000)
                here.traffic.sweep()
            await client.read(10)
            assert client.got.startswith(b"HTTP/1.1 200")

    run(story())


def test_a_client_that_never_reads_is_no_longer_read_from(run: Run, station: Open) -> None:
    request = get(b"/one", b"User-Agent: t") * 500

    async def story() -> None:
        async with station(limits=ConnectionLimits(stall_seconds=600)) as here:
            fill(here)
            client = await here.connect_without_reading()
            sent = 0
            async with asyncio.timeout(60):
                while True:
                    client.writer.write(request)
                    sent += 500
                    try:
                        async with asyncio.timeout(0.7):
                            await client.writer.drain()
                    except TimeoutError:  # nothing moves any more, or the machine is busy
                        flow = here.connections[0].flow
                        if flow.read_paused and flow.write_paused:
                            break
            (lane,) = here.connections
            counted = len(here.clicks())
            assert counted < sent
            assert lane.transport.get_write_buffer_size() < 16 << 20

            await client.read(
                sent * len(ONE), seconds=60
            )  # it reads after all, and nothing is missing
            assert client.got == sent * ONE
            assert len(here.clicks()) == sent

    run(story())


def test_an_answer_of_the_application_does_not_open_the_gate_again(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station() as here:
            fill(here)
            client = await here.connect()
            await client.send(get(b"/large"))
            await eventually(lambda: here.state.total_requests)
            (lane,) = here.connections
            assert lane.flow.write_paused
            assert lane.flow.read_paused
            await client.send(get(b"/one"))
            assert here.clicks() == []
            while not client.got.endswith(ONE):
                await client.read(len(client.got) + 1)
            assert len(here.clicks()) == 1

    run(story())


def test_a_client_that_never_reads_is_given_up(run: Run, station: Open) -> None:
    async def story() -> None:
        async with station(limits=ConnectionLimits(stall_seconds=3)) as here:
            fill(here)
            client = await here.connect_without_reading()
            for _ in range(400):
                client.writer.write(get(b"/one") * 500)
                await asyncio.sleep(0)
                if here.connections and here.connections[0].flow.write_paused:
                    break
                await asyncio.sleep(0.005)
            (lane,) = here.connections
            assert lane.flow.write_paused
            for _ in range(3):
                here.traffic.sweep()
            await asyncio.sleep(0.05)
            assert here.connections == []

    run(story())
