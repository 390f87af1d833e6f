"""10,000 guesses at a link's password are refused after the limit, and nothing leaks before it.

A link with a password gets guesses from one network, the right one among them. Then everything that
strangers, crawlers of chats and other users may ask about it is asked twice: what came back may not
change by a byte when its destination, rules, card, title, notes and tags do. Without a password it
must change, or the questions would prove nothing. At last it is timed: neither a page nor a wrong
guess may take longer or shorter because of what it hides.
"""

import asyncio
import json
import re
import secrets
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle, product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from proofs.harness import stage
from proofs.harness.report import Report
from proofs.harness.site import Site, site
from proofs.harness.wire import Answer, Wire, get, request
from refract.core.runtime import Runtime
from refract.identity import keys
from refract.identity.models import Scope, UserRole
from refract.identity.users import create_local_user
from refract.limits.shared_limits import GUESSES_PER_MINUTE, WRONG_GUESSES_PER_HOUR

PASSWORD = "correct horse battery"  # noqa: S105 - of a link that lives for this proof
AT_ONCE = 8
NOISE = 3.0
SHARE = 0.05
"""Medians may differ by `NOISE` times the difference of two equal links, and by this share."""
WARM_UP = 5
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "facebookexternalhit/1.1",
    "Googlebot/2.1",
    "curl/8.5.0",
)
METHODS = ("GET", "HEAD", "POST", "OPTIONS", "PUT")
QR_VIEWS = (".qr", ".qr?format=png&size=256")
VIEWS = ("", "+", *QR_VIEWS, ".rss", ".json", ".md", ".png", "/extra", "?a=b")
READS = (
    *("", "/rules", "/history", "/stats", "/stats/days", "/stats/referrers", "/stats/rules"),
    *("/owners", "/shares", "/teams", "/invitations"),
)
_VOLATILE_HEADERS = ("date", "set-cookie", "x-request-id", "retry-after", "server-timing")
_VOLATILE = re.compile(rb'name="csrf" (?:content|value)="[^"]*"')


@dataclass(frozen=True, slots=True)
class Size:
    guesses: int
    pages: int
    wrong: int
    workers: int


SIZES = {
    "short": Size(guesses=60, pages=60, wrong=8, workers=1),
    "full": Size(guesses=10_000, pages=3000, wrong=80, workers=2),
}


class Networks:
    """Addresses of networks that nobody has had."""

    def __init__(self) -> None:
        self._number = 0

    def draw(self) -> str:
        self._number += 1
        return f"x-forwarded-for: 10.{self._number >> 8 & 255}.{self._number & 255}.1"


async def plant(
    rt: Runtime, count: int, prefix: str, host: str = "example.com"
) -> list[stage.Planted]:
    """Make links that ask for the password."""
    return await stage.plant(
        rt, count, prefix=prefix, host=host, visibility="password", password=PASSWORD
    )


def guess(name: str, password: str, network: str) -> bytes:
    body = urlencode({"password": password}).encode()
    asked = request("POST", f"/{name}", body, network, "accept: */*")
    return asked.replace(b"application/json", b"application/x-www-form-urlencoded", 1)


@asynccontextmanager
async def wires(port: int, count: int) -> AsyncIterator[list[Wire]]:
    opened = [await Wire.open(port) for _ in range(count)]
    try:
        yield opened
    finally:
        for wire in opened:
            wire.close()


async def ask(port: int, asked: bytes) -> Answer:
    """Ask on a connection of its own."""
    wire = await Wire.open(port)
    try:
        return await wire.ask(asked)
    finally:
        wire.close()


# -- guesses


async def flood(report: Report, made: Site, rt: Runtime, networks: Networks, size: Size) -> None:
    """Guess from one network; some guesses are right, but come too late."""
    (link,) = await plant(rt, 1, "guessed", host="hidden.example")
    network, statuses, opened = networks.draw(), Counter[int](), 0
    numbers = iter(range(1, size.guesses + 1))
    began = time.monotonic()

    async def keep_guessing(wire: Wire, numbers: Iterator[int]) -> None:
        nonlocal opened
        for number in numbers:
            text = PASSWORD if number > AT_ONCE * 5 and number % 20 == 0 else f"guess {number}"
            answer = await wire.ask(guess(link.name, text, network))
            statuses[answer.status] += 1
            opened += b"hidden" in answer.head + answer.body

    async with wires(made.port, AT_ONCE) as several:
        await asyncio.gather(*(keep_guessing(wire, numbers) for wire in several))
    seconds = time.monotonic() - began
    allowed = size.workers * (GUESSES_PER_MINUTE + int(seconds / 60 * GUESSES_PER_MINUTE) + 1)
    report.say("guesses from one network", f"{size.guesses:,} in {seconds:.0f} s")
    report.bar(
        "of them compared with the password",
        statuses[403] + statuses[200],
        f"≤ {allowed}",
        held=0 < statuses[403] + statuses[200] <= allowed,
    )
    report.say("refused with 429", statuses[429])
    report.none("answers that are neither", statuses.total() - statuses[403] - statuses[429])
    report.none("guesses that opened it, though some were right", opened)
    answer = await ask(made.port, guess(link.name, PASSWORD, networks.draw()))
    report.bar("right guess of another network", answer.status, "200", held=answer.status == 200)


# -- what may be asked before


def list_questions(link_id: int, name: str, words: Iterable[str], keys: list[str]) -> list[bytes]:
    """Return every request by a stranger, by crawlers and by another user."""
    asked = []
    for method, view, accept in product(METHODS, VIEWS, ("text/html", "*/*")):
        asked += [
            request(method, f"/{name}{view}", b"", f"accept: {accept}", f"user-agent: {agent}")
            for agent in (AGENTS if method == "GET" else AGENTS[:1])
        ]
    asked += [guess(name, "wrong", f"x-forwarded-for: 10.200.{n}.1") for n in range(2)]
    for credential in keys:
        asked += [get(f"/api/v1/links/{link_id}{path}", credential) for path in READS]
        asked += [get(f"/{name}{view}", "accept: text/html", credential) for view in VIEWS]
        asked.append(get(f"/api/v1/names/{name}", credential))
        for word in words:
            query = urlencode({"q": word})
            asked += [
                get(f"/api/v1/links?{query}", credential),
                get(f"/api/v1/search?{query}", credential),
            ]
        for agent in AGENTS:
            body = {"path": f"/{name}/extra?a=b", "visitor": {"agent": agent, "country": "AT"}}
            asked.append(request("POST", "/api/v1/resolve", json.dumps(body).encode(), credential))
    return asked


async def walk(port: int, questions: list[bytes], networks: Networks) -> list[bytes]:
    """Return every response without what changes by itself."""
    answers = []
    for asked in questions:
        head, rest = asked.split(b"\r\n", 1)
        sender = b"" if b"x-forwarded-for" in rest else networks.draw().encode() + b"\r\n"
        answers.append(_strip(await _ask_patiently(port, head + b"\r\n" + sender + rest)))
    return answers


async def _ask_patiently(port: int, asked: bytes) -> Answer:
    if asked.startswith(b"HEAD"):
        # The length of a body that isn't sent must not be waited for.
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(asked)
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return Answer(int(head[9:12]), head, b"", closes=True)
    return await ask(port, asked)


def _strip(answer: Answer) -> bytes:
    lines = [
        line
        for line in answer.head.split(b"\r\n")
        if not line.lower().startswith(tuple(f"{name}:".encode() for name in _VOLATILE_HEADERS))
    ]
    body = answer.body.replace((answer.header("x-request-id") or "no id").encode(), b"")
    return _VOLATILE.sub(b"", b"\r\n".join(sorted(lines)) + b"\r\n\r\n" + body)


def describe(side: str) -> dict[str, Any]:
    """Return everything that a link hides, with words that only this side has."""
    word = f"hidden-{side}"
    long = "y" * (1 if side == "a" else 400)
    return {
        "destination": f"https://{word}.example/{long}?secret={long}",
        "title": f"Title {word} {long[:80]}",
        "notes": f"Notes {word} {long}",
        "tags": [word],
        "preview_card": {"title": word, "image_url": f"https://{word}.example/{long}.png"},
        "forward_query": side == "a",
    }


def describe_rules(side: str) -> dict[str, Any]:
    rule = {
        "destination": f"https://hidden-{side}.example/rule",
        "conditions": {"countries": ["AT"] if side == "a" else ["DE", "CH"]},
    }
    return {"rules": [rule] * (1 if side == "a" else 3)}


async def compare(report: Report, made: Site, rt: Runtime, networks: Networks, admin: str) -> None:
    """Ask everything before and after all that is hidden was replaced."""
    stranger = await _make_key_of_another(rt)
    (link,) = await plant(rt, 1, "asked")
    words = ("hidden", "hidden-a", "hidden-b.example", link.name)
    questions = list_questions(link.id, link.name, words, [stranger])
    place, owner = f"/api/v1/links/{link.id}", f"x-api-key: {admin}"

    async def change(method: str, path: str, body: dict[str, Any]) -> None:
        answer = await ask(made.port, request(method, path, json.dumps(body).encode(), owner))
        assert answer.status == 200, answer

    async def describe_as(side: str) -> list[bytes]:
        await change("PATCH", place, describe(side))
        await change("PUT", f"{place}/rules", describe_rules(side))
        return await walk(made.port, questions, networks)

    first, again, second = await describe_as("a"), await describe_as("a"), await describe_as("b")
    report.say("questions about a link", len(questions))
    _report_changes(report, "answers that change by themselves", questions, first, again)
    _report_changes(report, "answers that change with what is hidden", questions, first, second)
    told = sum(b"hidden-" in said for said in first + second)
    report.none("answers that say a hidden word", told)
    await change("PATCH", place, {"visibility": "unlisted"})
    bare, other = await walk(made.port, questions, networks), await describe_as("a")
    telling = sum(map(_differ, bare, other))
    report.bar("answers that change without a password", telling, "> 10", held=telling > 10)


def _differ(one: bytes, other: bytes) -> bool:
    return one != other


def _report_changes(
    report: Report, what: str, questions: list[bytes], before: list[bytes], after: list[bytes]
) -> None:
    changed = [
        asked.split(b" HTTP/", 1)[0].decode()
        for asked, one, two in zip(questions, before, after, strict=True)
        if one != two
    ]
    report.none(what, len(changed))
    report.notes += [f"{what}: {asked}" for asked in changed[:5]]


async def _make_key_of_another(rt: Runtime) -> str:
    async with rt.db.write() as session:
        name = secrets.token_hex(8)
        user = await create_local_user(
            session, rt, f"{name}@example.com", subject=name, role=UserRole.USER
        )
        scopes = [Scope.READ, Scope.WRITE]
        return f"x-api-key: {(await keys.create_key(session, rt, user, 'other', scopes))[1]}"


# -- time


async def time_pages(report: Report, made: Site, rt: Runtime, size: Size, admin: str) -> None:
    """Compare the page of a password on two equal links and on one that hides much more."""
    links = await plant(rt, 3, "timed")
    owner = f"x-api-key: {admin}"
    changes = (("PATCH", "", describe("b")), ("PUT", "/rules", describe_rules("b")))
    for method, path, body in changes:
        place = f"/api/v1/links/{links[2].id}{path}"
        asked = request(method, place, json.dumps(body).encode(), owner)
        assert (await ask(made.port, asked)).status == 200
    took = await _alternate(
        made.port, [[get(f"/{link.name}", "accept: text/html")] for link in links], size.pages
    )
    _judge_times(report, "page of a link that hides little, and more", took)


async def time_guesses(
    report: Report, made: Site, rt: Runtime, networks: Networks, size: Size
) -> None:
    """Compare wrong guesses that are nothing like the password, and almost it."""
    assert size.wrong < WRONG_GUESSES_PER_HOUR
    links = await plant(rt, 3, "close")
    guesses = ["x" * len(PASSWORD), "y" * len(PASSWORD), PASSWORD[:-1] + "x"]
    took = await _alternate(
        made.port,
        [
            [guess(link.name, text, networks.draw()) for _ in range(WARM_UP + size.wrong)]
            for link, text in zip(links, guesses, strict=True)
        ],
        size.wrong,
    )
    _judge_times(report, "wrong guess far from the password, and next to it", took)


async def _alternate(port: int, questions: list[list[bytes]], rounds: int) -> list[list[float]]:
    """Ask the next question of each group in turn. Return the seconds of each group."""
    took: list[list[float]] = [[] for _ in questions]
    async with wires(port, 1) as (wire,):
        groups = list(map(cycle, questions))
        for _ in range(WARM_UP + rounds):
            for group, seconds in zip(groups, took, strict=True):
                asked = next(group)
                began = time.perf_counter()
                answer = await wire.ask(asked)
                seconds.append(time.perf_counter() - began)
                assert answer.status in (200, 403), answer
    return [seconds[WARM_UP:] for seconds in took]


def _judge_times(report: Report, what: str, took: list[list[float]]) -> None:
    one, equal, other = (statistics.median(group) for group in took)
    noise = abs(one - equal)
    bound = max(NOISE * noise, SHARE * one)
    report.say(f"{what}, median", f"{one * 1000:.2f}, {other * 1000:.2f} ms")
    report.bar(
        "difference",
        f"{abs(other - one) * 1000:.2f} ms",
        f"≤ {bound * 1000:.2f} ms",
        held=abs(other - one) <= bound,
        timed=True,
    )


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    chosen, networks = SIZES[size], Networks()
    report = Report(f"passwords: {dialect}, {chosen.workers} processes with pages", seed)
    async with site(
        home,
        dialect,
        workers=chosen.workers,
        REFRACT_TRUSTED_PROXIES="127.0.0.1/32",
        REFRACT_RENDERS_PER_MINUTE="unlimited",
    ) as made:
        made.start()
        await made.until_complete()
        async with made.runtime() as rt:
            admin = await stage.make_key(rt)
            await flood(report, made, rt, networks, chosen)
            await compare(report, made, rt, networks, admin)
            await time_pages(report, made, rt, chosen, admin)
            await time_guesses(report, made, rt, networks, chosen)
        await made.stop()
    yield report


def main(arguments: list[str]) -> int:
    return stage.main("passwords", arguments, __doc__, "sqlite", prove)
