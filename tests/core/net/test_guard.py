"""The corpora at the guard, before any socket: no wrong form passes or is refused."""

from collections.abc import Callable, Sequence
from ipaddress import ip_address

import pytest

from proofs.security import COUNTED
from refract.core.net import (
    AddressGuard,
    FetchError,
    HostResolver,
    IpAddress,
    RefusedAddress,
    Unreachable,
    is_public,
)
from refract.core.net.addresses import resolve_allowed_addresses
from refract.core.net.fetcher import _parse_url
from tests.core.net import corpus
from tests.core.net.corpus import PUBLIC, Line

GOOD, GOOD6 = PUBLIC, "2606:2800:21f:cb07:6820:80da:af6b:8b2c"


def answering(*texts: str) -> HostResolver:
    async def resolve(_host: str) -> Sequence[IpAddress]:
        return [ip_address(text) for text in texts]

    return resolve


def world(line: Line) -> HostResolver:
    """Resolve every name to the inside, except for the good one."""

    async def resolve(host: str) -> Sequence[IpAddress]:
        return [ip_address(PUBLIC if host == "good.test" else line.address)]

    return resolve


async def _judge(url: str, resolve: HostResolver) -> list[IpAddress]:
    return await resolve_allowed_addresses(_parse_url(url), AddressGuard(), resolve)


def test_the_data_files_are_what_the_ingredients_make() -> None:
    assert corpus.read_hostile() == corpus.hostile()
    assert corpus.read_public() == corpus.public()
    assert len({line.url for line in corpus.read_hostile()}) >= 500
    assert len(set(corpus.read_public())) >= 200


async def test_no_hostile_form_passes(record_property: Callable[[str, object], None]) -> None:
    record_property(COUNTED, len({line.url for line in corpus.read_hostile()}))
    passed = []
    for line in corpus.read_hostile():
        try:
            addresses = await _judge(line.url, world(line))
        except RefusedAddress:
            continue
        if line.verdict == "refused" or addresses != [ip_address(PUBLIC)]:
            passed.append(line)

    assert passed == []


async def test_no_public_form_is_refused() -> None:
    refused = []
    for url in corpus.read_public():
        try:
            assert all(is_public(address) for address in await _judge(url, answering(GOOD, GOOD6)))
        except FetchError as exc:
            refused.append((url, exc.detail))

    assert refused == []


@pytest.mark.parametrize("bad", corpus.OF["v4"] + corpus.OF["v6"])
@pytest.mark.parametrize(
    "shape",
    ["{bad}", "{good} {bad}", "{bad} {good}", "{good} {good6} {bad}", "{good6} {bad} {good}"],
)
async def test_one_forbidden_answer_among_good_ones_is_enough(bad: str, shape: str) -> None:
    answers = shape.format(bad=bad, good=GOOD, good6=GOOD6).split()

    with pytest.raises(RefusedAddress):
        await _judge("https://rebound.test/", answering(*answers))


async def test_a_name_without_an_address_is_unreachable() -> None:
    with pytest.raises(Unreachable) as caught:
        await _judge("https://empty.test/", answering())

    assert caught.value.is_transient


async def test_an_address_is_never_looked_up() -> None:
    async def resolve(host: str) -> Sequence[IpAddress]:
        raise AssertionError(host)

    assert await _judge("http://0x5db8d70e/", resolve) == [ip_address(PUBLIC)]
    assert await _judge("http://[2606:4700:4700::1111]/", resolve) == [
        ip_address("2606:4700:4700::1111")
    ]


@pytest.mark.parametrize(
    "host", ["a" * 64 + ".test", ".".join(["a" * 60] * 5), "a." * 130 + "test"]
)
async def test_a_name_that_no_dns_can_hold_is_refused(host: str) -> None:
    with pytest.raises(RefusedAddress):
        await _judge(f"http://{host}/", answering(GOOD))


def test_a_refusal_tells_strangers_nothing_about_the_inside() -> None:
    refused, unreachable = RefusedAddress("db.internal is 10.0.0.7"), Unreachable("no such name")

    assert (str(refused), refused.kind) == (str(unreachable), unreachable.kind)
    assert "10.0.0.7" in refused.detail
    assert (refused.is_transient, unreachable.is_transient) == (False, True)
