"""The hostile corpus with real sockets: by address, DNS answer, redirect and page reference."""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address, ip_network

import pytest

from refract.core.net import (
    AddressGuard,
    FetchError,
    FetchLimits,
    IpAddress,
    PageFetcher,
    RefusedAddress,
    is_public,
    resolve_by_system,
)
from refract.core.net.addresses import unwrap_ipv4
from refract.core.net.connection import open_connection
from tests.core.net import corpus
from tests.core.net.corpus import PUBLIC, Line
from tests.core.net.sealed.internet import PUBLIC6, Internet, Names, answer, page, redirect, sends

EVERYTHING = (ip_network("0.0.0.0/0"), ip_network("::/0"))
Way = Callable[[PageFetcher, Internet, Line], Awaitable[object]]


class World:
    """Resolve every name to the address of the current line, except for the good ones."""

    address = PUBLIC

    async def __call__(self, host: str) -> Sequence[IpAddress]:
        if host == "mixed.test":
            return [ip_address(PUBLIC), ip_address(self.address)]
        return [ip_address(PUBLIC if host == "good.test" else self.address)]


async def _direct(fetcher: PageFetcher, _net: Internet, line: Line) -> object:
    return await fetcher.fetch(line.url)


async def _dns(fetcher: PageFetcher, _net: Internet, _line: Line) -> object:
    return await fetcher.fetch("http://mixed.test/")


async def _redirect_hop(fetcher: PageFetcher, net: Internet, line: Line) -> object:
    raw = answer("302 Found", Location="@@").replace(b"@@", line.url.encode())
    net.sites["/hop"] = sends(raw)
    return await fetcher.fetch("http://good.test/hop")


async def _part_of_a_page(fetcher: PageFetcher, net: Internet, line: Line) -> object:
    net.sites["/page"] = page(line.url.encode())
    found = await fetcher.fetch("http://good.test/page")
    return await fetcher.fetch(found.resolve_url(found.text), accept=("image/*",))


@pytest.mark.parametrize("way", [_direct, _dns, _redirect_hop, _part_of_a_page])
async def test_nothing_inside_is_ever_connected_to(
    net: Internet, connects: list[str], way: Way
) -> None:
    world = World()
    fetcher = PageFetcher(AddressGuard(), resolve=world)
    not_refused = []
    for line in corpus.read_hostile():
        world.address = line.address
        try:
            await way(fetcher, net, line)
        except RefusedAddress:
            continue
        except FetchError as exc:
            if line.verdict == "refused" and not _is_a_relative_path(way, line):
                not_refused.append((line, exc.detail))
        else:
            not_refused.append((line, "fetched"))

    assert not_refused == []
    assert set(connects) <= {PUBLIC}
    assert set(net.reached) <= {PUBLIC}
    if way in (_redirect_hop, _part_of_a_page):
        assert len(net.reached) >= len(corpus.read_hostile())  # every line really took this path


def _is_a_relative_path(way: Way, line: Line) -> bool:
    """As a redirect it is a path on the public host itself, or a broken header: not an address."""
    return way in (_redirect_hop, _part_of_a_page) and "://" not in line.url


async def test_the_detector_would_see_it(net: Internet, connects: list[str]) -> None:
    """With the guard wide open the same corpus reaches the inside: silence above has meaning."""
    world = World()
    fetcher = PageFetcher(AddressGuard(allow=EVERYTHING), resolve=world)
    ports = {
        line.url
        for line in corpus.read_hostile()
        if line.url.rpartition(":")[2].rstrip("/").isdigit()
    }  # where nobody listens
    for line in corpus.read_hostile():
        if line.verdict == "refused" and line.url.startswith("http://") and line.url not in ports:
            world.address = line.address
            with contextlib.suppress(FetchError):
                await fetcher.fetch(line.url, budget=1)

    inside = {text for text in net.reached if not is_public(ip_address(text))}
    assert len(inside) >= 25
    assert {"127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "fd00:ec2::254"} <= inside
    assert {unwrap_ipv4(ip_address(text)) for text in inside} <= {
        unwrap_ipv4(ip_address(text)) for text in connects
    }


REBINDING = {
    "flips on the second question": (["{good}", "{bad}"], [True, False, False]),
    "flips on the third question": (["{good}", "{good}", "{bad}"], [True, True, False]),
    "flips back and forth": (["{bad}", "{good}", "{bad}", "{good}"], [False, True, False, True]),
    "always inside": (["{bad}"], [False, False]),
    "good, then bad": (["{good} {bad}"], [False, False]),
    "bad, then good": (["{bad} {good}"], [False, False]),
    "good A, bad AAAA": (["{good} ::1"], [False]),
    "bad A, good AAAA": (["{bad} {good6}"], [False]),
    "good A, mapped AAAA": (["{good} ::ffff:10.0.0.7"], [False]),
    "good A, NAT64 of the inside": (["{good} 64:ff9b::a00:7"], [False]),
    "good AAAA first, then flips": (["{good6}", "::1"], [True, False]),
    "many good, one bad": (["{good} " * 30 + "{bad}"], [False]),
    "the same good one over and over": (["{good} " * 30], [True, True]),
    "nothing, then something": (["", "{good}"], [False, True]),
    "nothing at all": ([""], [False]),
    "unspecified": (["0.0.0.0"], [False]),  # noqa: S104 - an answer, not a binding
    "unspecified AAAA": (["{good} ::"], [False]),
    "broadcast": (["255.255.255.255 {good}"], [False]),
    "metadata": (["169.254.169.254", "{good}"], [False, True]),
    "link-local with a zone": (["fe80::1%lo"], [False]),
    "alias into the inside, by and by": (
        ["{good} {good6}", "{good6} {bad}", "{bad}"],
        [True, False, False],
    ),
}


@pytest.mark.parametrize("script", REBINDING, ids=str)
async def test_a_name_that_changes_its_mind(
    net: Internet, connects: list[str], script: str
) -> None:
    answers, expected = REBINDING[script]
    names = Names(
        evil_test=[text.format(good=PUBLIC, good6=PUBLIC6, bad="10.0.0.7") for text in answers]
    )
    fetcher = PageFetcher(AddressGuard(), resolve=names)
    net.sites["/"] = page()

    fetched = []
    for _ in expected:
        try:
            await fetcher.fetch("http://evil.test/")
        except FetchError:
            fetched.append(False)
        else:
            fetched.append(True)

    assert fetched == expected
    assert len(names.asked) == len(
        expected
    )  # one question for each fetch, and what was checked is what was used
    assert set(connects) <= {PUBLIC, PUBLIC6}


async def test_a_name_that_flips_between_two_hops(net: Internet, connects: list[str]) -> None:
    fetcher = PageFetcher(AddressGuard(), resolve=Names(evil_test=[PUBLIC, "127.0.0.1"]))
    net.sites["/"] = redirect("/again")

    with pytest.raises(RefusedAddress):
        await fetcher.fetch("http://evil.test/")

    assert connects == [PUBLIC]


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "//169.254.169.254/latest/",
        "http://0/",
        "http://good.test:22/",
    ],
)
async def test_a_redirect_inside_is_refused_at_any_hop(
    net: Internet, connects: list[str], fetcher: PageFetcher, target: str
) -> None:
    net.sites |= {
        "/0": redirect("/1"),
        "/1": redirect("http://other.test/2"),
        "/2": redirect(target),
    }

    with pytest.raises(RefusedAddress) as caught:
        await fetcher.fetch("http://good.test/0")

    assert not caught.value.is_transient
    assert connects == [PUBLIC, PUBLIC, "1.0.0.1"]


@pytest.mark.parametrize(("text", "port"), [("10.0.0.1", 80), ("::1", 443), (PUBLIC, 22)])
async def test_the_socket_has_a_guard_of_its_own(connects: list[str], text: str, port: int) -> None:
    """Code that forgets to check before connecting still gets nowhere."""
    with pytest.raises(RefusedAddress):
        async with open_connection(
            AddressGuard(),
            [ip_address(text)],
            port,
            tls=None,
            host="forgotten.test",
            limits=FetchLimits(),
        ):
            pass

    assert connects == []


async def test_whom_we_reached_is_looked_at_again(net: Internet) -> None:
    """The kernel takes 0.0.0.0 for loopback: the approved and the reached address differ."""
    fetcher = PageFetcher(AddressGuard(allow=(ip_network("0.0.0.0/32"),)))

    with pytest.raises(RefusedAddress, match="couldn't be reached") as caught:
        await fetcher.fetch("http://0.0.0.0/")

    assert "reached 127.0.0.1" in caught.value.detail
    assert net.requests == []


async def test_the_system_resolver_is_under_the_same_guard(connects: list[str]) -> None:
    assert ip_address("127.0.0.1") in await resolve_by_system("localhost")
    with pytest.raises(RefusedAddress):
        await PageFetcher(AddressGuard()).fetch("http://localhost/")

    assert [text for text in connects if ":80" in text or text == "127.0.0.1"] == []


async def test_an_opened_network_is_reached_and_its_neighbour_is_not(net: Internet) -> None:
    await net.listen(8123)
    net.sites["/"] = page()
    fetcher = PageFetcher(AddressGuard(allow=(ip_network("10.1.0.0/16"),)))

    assert (await fetcher.fetch("http://10.1.0.1:8123/")).status == 200
    with pytest.raises(RefusedAddress):
        await fetcher.fetch("http://10.2.0.1/")
    assert net.reached == ["10.1.0.1"]


async def test_proxies_of_the_environment_are_not_asked(
    net: Internet, connects: list[str], fetcher: PageFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://10.0.0.1:80")
    net.sites["/"] = page()

    assert (await fetcher.fetch("http://good.test/")).status == 200
    assert connects == [PUBLIC]
