"""`refract doctor` on domains."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from refract.cli.doctor.domains import check_domains
from refract.cli.doctor.findings import FindingStatus
from refract.core.runtime import Runtime
from tests import make
from tests.client import on_sqlite
from tools.servers import free_port

pytestmark = on_sqlite
DOMAIN = "127.0.0.2"
"""An address of this machine, at which nothing else listens."""


async def findings(rt: Runtime, **changes: object) -> list[tuple[FindingStatus, str]]:
    found = await check_domains(rt.settings.model_copy(update=changes))
    assert all(finding.remedy for finding in found if finding.status is not FindingStatus.OK)
    return [(finding.status, finding.message) for finding in found]


@asynccontextmanager
async def front(status: str) -> AsyncIterator[int]:
    """A reverse proxy that answers everything with one status."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    port = free_port()
    async with await asyncio.start_server(answer, DOMAIN, port):
        yield port


async def test_without_domains_there_is_nothing_to_say(rt: Runtime) -> None:
    assert await findings(rt) == []


async def test_a_domain_needs_a_base_url(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await make.domain(session, rt, "sho.test")

    ((status, message),) = await findings(rt, base_url=None)

    assert status is FindingStatus.ERROR
    assert message == "Visitors can't reach sho.test: the public URL is not set."
    assert await findings(rt) == [(FindingStatus.OK, "1 active domain.")]


async def test_the_default_domain_hides_one_with_its_host(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await make.domain(session, rt, "sho.test")

    ((status, message),) = await findings(rt, base_url="https://sho.test")

    assert (status, message.split()[0]) == (FindingStatus.WARNING, "sho.test")


async def test_a_domain_is_requested(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await make.domain(session, rt, DOMAIN)

    silent = await findings(rt, base_url=f"http://go.test:{free_port()}")
    async with front("421 Misdirected Request") as port:
        foreign = await findings(rt, base_url=f"http://go.test:{port}")
    async with front("200 OK") as port:
        fine = await findings(rt, base_url=f"http://go.test:{port}")

    assert [status for status, _ in silent + foreign + fine] == [
        FindingStatus.WARNING,
        FindingStatus.WARNING,
        FindingStatus.OK,
    ]
    assert "doesn't respond" in silent[0][1]
    assert "responds with 421" in foreign[0][1]


async def test_a_disabled_domain_is_not_requested(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await make.domain(session, rt, DOMAIN)
        await make.disable_domain(session, rt, DOMAIN)

    assert await findings(rt, base_url=None) == []
