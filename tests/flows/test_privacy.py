"""An address that is sent through every header is found nowhere afterwards.

Not in the database, the spool or the log.
"""

import socket
from pathlib import Path

import httpx

from tests.flows.test_clicks import PERSON
from tests.redirect.outside import Outside
from tests.serving import serving
from tests.waiting import PATIENCE, eventually_blocking

FOUR = "203.0.113.201"
SIX = "2001:db8:4:5:c0ff:ee00:dead:beef"
HEADERS = (
    "x-forwarded-for",
    "x-real-ip",
    "forwarded",
    "x-client-ip",
    "x-cluster-client-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "true-client-ip",
    "fastly-client-ip",
    "x-original-forwarded-for",
    "x-remote-addr",
    "x-forwarded",
    "via",
    "x-request-id",
    "from",
    "cookie",
    "authorization",
    "x-api-key",
    "origin",
    "accept-language",
    "if-none-match",
    "traceparent",
)


def traces() -> list[bytes]:
    packed = [socket.inet_pton(socket.AF_INET, FOUR), socket.inet_pton(socket.AF_INET6, SIX)]
    return [
        FOUR.encode(),
        SIX.encode(),
        b"c0ff:ee00:dead:beef",
        packed[0][::-1],
        *packed,
        packed[1][6:],
    ]


def test_an_address_leaves_no_trace(tmp_path: Path) -> None:
    data = tmp_path / "data"
    outside = Outside(data)
    with (
        serving(data, REFRACT_TRUSTED_PROXIES="127.0.0.0/8", REFRACT_LOG_LEVEL="debug") as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as client,
    ):
        link = outside.link(name="n")
        for address in (FOUR, SIX):
            sent = (
                PERSON
                | dict.fromkeys(HEADERS, address)
                | {
                    "forwarded": f'for="[{address}]"',
                    "referer": f"https://a.example/x?ip={address}",
                }
            )
            for path in ("/n", "/n", "/nowhere", "/app/links", "/api/v1/links"):
                client.get(path, headers=sent, params={"ip": address, "utm_source": "mail"})
        eventually_blocking(lambda: outside.clicks(link.id) == 4)
        spooled = b"".join(
            path.read_bytes() for path in (data / "spool").rglob("*") if path.is_file()
        )
        assert b"a.example" in spooled  # it is still there, and was looked at
        kept = [path for path in (*data.rglob("*"), *tmp_path.glob("*.log")) if path.is_file()]
        whole = {path.name: path.read_bytes() for path in kept}

    assert any(
        b"203.0.113.0" in content for content in whole.values()
    )  # the anonymised form did arrive
    assert [
        (name, trace) for name, content in whole.items() for trace in traces() if trace in content
    ] == []
