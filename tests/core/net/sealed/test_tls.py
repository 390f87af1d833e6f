"""The connection goes to an address; the certificate must still be for the name."""

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest

from refract.core.net import (
    AddressGuard,
    FetchLimits,
    PageFetcher,
    RefusedAddress,
    TimedOut,
    Unreachable,
)
from tests.core.net.corpus import PUBLIC
from tests.core.net.sealed.internet import Internet, Names, page, redirect

NAMES = Names(good_test=[PUBLIC], good_test_=[PUBLIC], wrong_test=[PUBLIC])


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for good.test and the public address, in one file with its key."""
    folder = tmp_path_factory.mktemp("tls")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-subj", "/CN=good.test", "-addext", f"subjectAltName=DNS:good.test,IP:{PUBLIC}"]
    try:
        subprocess.run(
            [*command, "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
            check=True,
            capture_output=True,
        )
    except FileNotFoundError:
        pytest.skip("absent service: openssl")
    return folder


@pytest.fixture
async def seen(net: Internet, certificate: Path) -> list[str | None]:
    """Serve on 443; return the list of server names that clients requested."""
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")

    def note(_socket: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        names.append(name)

    context.sni_callback = note
    await net.listen(443, tls=context)
    net.sites["/"] = page(b"secure")
    return names


def _trusting(certificate: Path) -> PageFetcher:
    return PageFetcher(
        AddressGuard(),
        resolve=NAMES,
        tls=ssl.create_default_context(cafile=str(certificate / "cert.pem")),
    )


@pytest.mark.parametrize(
    ("host", "name"), [("good.test", "good.test"), ("good.test.", "good.test"), (PUBLIC, None)]
)
async def test_the_name_is_kept_for_the_certificate(
    certificate: Path, seen: list[str | None], host: str, name: str | None
) -> None:
    assert (await _trusting(certificate).fetch(f"https://{host}/")).body == b"secure"
    assert seen == [name]


async def test_a_certificate_for_another_name_is_refused(
    certificate: Path, net: Internet, seen: list[str | None]
) -> None:
    with pytest.raises(Unreachable) as caught:
        await _trusting(certificate).fetch("https://wrong.test/")

    assert type(caught.value) is Unreachable
    assert "wrong.test" in caught.value.detail
    assert net.requests == []


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    net: Internet, seen: list[str | None]
) -> None:
    with pytest.raises(Unreachable):
        await PageFetcher(AddressGuard(), resolve=NAMES).fetch("https://good.test/")

    assert net.requests == []


async def test_from_http_to_https_but_never_back(
    certificate: Path, net: Internet, seen: list[str | None]
) -> None:
    net.sites |= {"/up": redirect("https://good.test/"), "/down": redirect("http://good.test/")}

    assert (await _trusting(certificate).fetch("http://good.test/up")).url == "https://good.test/"
    with pytest.raises(RefusedAddress):
        await _trusting(certificate).fetch("https://good.test/down")
    assert [request.target for request in net.requests] == ["/up", "/", "/down"]


async def test_a_server_that_never_shakes_hands(net: Internet) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, PUBLIC, 443)
    async with server:
        with pytest.raises(TimedOut):
            await PageFetcher(AddressGuard(), resolve=NAMES, limits=FetchLimits(connect=0.2)).fetch(
                "https://good.test/", budget=600
            )
        await asyncio.sleep(0.01)
