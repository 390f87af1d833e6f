"""Many domains with the same names on each: every address leads to its own destination."""

import random
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from itertools import islice
from typing import Any

from bench._links import FIRST_ID, STEP, build_domain, build_link, build_name, copy_rows
from proofs.harness.wire import Wire
from refract.core.clock import ManualClock
from refract.core.db.types import Model
from refract.core.runtime import Runtime
from refract.domains.models import Domain
from refract.identity.models import User
from refract.links import service
from refract.links.models import Link, LinkOwner
from refract.links.service import digest
from refract.names.models import Name
from tests import make
from tests.client import on_sqlite
from tests.domains.test_caches import nodes, settings
from tests.machine import size
from tests.redirect.nodes import Place
from tools.servers import Redis as RedisServer

__all__ = ["nodes", "settings"]
DOMAINS, NAMES = size("DOMAINS", 6), size("NAMES", 12)
ASKED, CHANGES = size("ASKED", 60), size("CHANGES", 12)
SLICE = 5_000
Address = tuple[int, int]
"""A domain, of which the first is the default one, and a name."""


def host_of(domain: int) -> str:
    return f"d{domain}.test" if domain else ""


class World:
    """Links that each have one name, the same on every domain, and what has changed since."""

    def __init__(self, rt: Runtime, owner: User, seed: int) -> None:
        self.rt, self.owner, self.random = rt, owner, random.Random(seed)
        self.changed: dict[Address, tuple[int, str | None]] = {}
        self.holders: dict[Address, int] = {}

    async def fill(self) -> None:
        for domain in range(1, DOMAINS):
            await copy_rows(self.rt.db, Domain, [build_domain(domain, host_of(domain))])
        for domain in range(DOMAINS):
            names = iter(range(NAMES))
            while some := [(domain, name) for name in islice(names, SLICE)]:
                await self.copy(some)

    async def copy(self, addresses: list[Address]) -> None:
        rows: Mapping[type[Model], Iterator[dict[str, Any]]] = {
            Link: map(self.build_link, addresses),
            LinkOwner: map(self.build_owner, addresses),
            Name: (
                build_name(name, host_of(domain)) | {"target_id": self.id_of((domain, name))}
                for domain, name in addresses
            ),
        }
        for model, built in rows.items():
            await copy_rows(self.rt.db, model, list(built))

    def id_of(self, address: Address) -> int:
        domain, name = address
        return FIRST_ID + (domain * NAMES + name) * STEP

    def build_link(self, address: Address) -> dict[str, Any]:
        domain, name = address
        url = self.url_of(address)
        told = {"destination": url, "href": url, "href_digest": digest(url), "search_text": url}
        return build_link(domain * NAMES + name) | told | {"domain": host_of(domain) or None}

    def build_owner(self, address: Address) -> dict[str, Any]:
        link = build_link(address[0] * NAMES + address[1])
        return {
            "link_id": link["id"],
            "user_id": self.owner.id,
            "primary_link_id": link["id"],
            **{name: link[name] for name in ("created_at", "updated_at", "status", "visibility")},
        }

    def url_of(self, address: Address) -> str:
        return f"https://{host_of(address[0]) or 'default'}/of/{address[1]}"

    def expect(self, address: Address) -> tuple[int, str | None]:
        return self.changed.get(address, (302, self.url_of(address)))

    def pick(self) -> Address:
        return self.random.randrange(DOMAINS), self.random.randrange(NAMES)

    async def change(self) -> Address:
        """Disable a link, take its name away, or give the name to another link."""
        address = self.pick()
        number = self.holders.get(address, self.id_of(address))
        name, host = f"s{address[1]}", host_of(address[0]) or None
        who, space, now = make.who(self.owner), make.space(self.rt), self.rt.clock.now()
        async with self.rt.db.write() as session:
            status, _ = self.expect(address)
            if status == 404:
                url = f"https://changed.test/{len(self.changed)}/{name}"
                made = await make.link(session, self.rt, self.owner, url, name=name, domain=host)
                self.holders[address], self.changed[address] = made.id, (302, url)
            elif status == 302 and self.random.random() < 0.5:
                await service.disable_link(session, who, number, now)
                self.changed[address] = 410, None
            else:
                await service.release_name(session, space, who, number, name, host=host)
                self.changed[address] = 404, None
        return address

    async def check(self, wire: Wire, address: Address) -> None:
        domain, name = address
        host = host_of(domain) or "go.test"
        answer = await wire.ask(f"GET /s{name} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        found = answer.status, answer.header("location")
        assert found == self.expect(address), address


async def play(
    rt: Runtime, owner: User, nodes: list[Place], clock: ManualClock, seed: int
) -> World:
    """Follow addresses, cold and cached; then change some, and follow their names everywhere."""
    world = World(rt, owner, seed)
    await world.fill()
    asked = [world.pick() for _ in range(ASKED)]
    async with AsyncExitStack() as stack:
        wires = []
        for node in nodes:
            await node.engine.domains.load(node.reader)
            client = await stack.enter_async_context(node.on_the_wire())
            wires.append(await Wire.open(client.base_url.port or 0))
        for wire in wires:
            for address in asked + asked[-1000:]:
                await world.check(wire, address)
        for _ in range(CHANGES):
            before = [set(node.cached) for node in nodes]
            domain, name = await world.change()
            for node, known in zip(nodes, before, strict=True):
                assert await node.engine.invalidator.poll()
                path = f"{host_of(domain)}/s{name}".encode()
                assert known - node.cached <= {path}  # of no other address
            clock.advance(1)
            for wire in wires:
                for other in range(DOMAINS):
                    await world.check(wire, (other, name))
        for wire in wires:
            wire.close()
    return world


async def test_the_same_names_on_many_domains(
    rt: Runtime, ada: User, nodes: list[Place], clock: ManualClock
) -> None:
    await play(rt, ada, nodes, clock, seed=4)


@on_sqlite
async def test_the_same_names_with_a_shared_cache(
    redis_server: RedisServer, rt: Runtime, ada: User, nodes: list[Place], clock: ManualClock
) -> None:
    del redis_server
    await play(rt, ada, nodes, clock, seed=5)
    assert sum(node.engine.redis_cache.hits for node in nodes if node.engine.redis_cache) > 0
