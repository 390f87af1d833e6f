"""Changes in any order, seen through the caches of two processes: each domain for itself."""

import random

import pytest

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.domains import service as domains
from refract.domains.models import DomainState
from refract.domains.schemas import DomainPatch
from refract.identity.models import User
from refract.links import service
from refract.registry import build_domain_hooks
from tests import make
from tests.client import on_sqlite
from tests.redirect.nodes import Place, nodes, settings
from tools.servers import Redis as RedisServer

__all__ = ["nodes", "settings"]

HOSTS = ["", "one.test", "two.test"]
NAMES = ["Plan", "Team-Page", "x9"]
STEPS = 40


class Story:
    """Random changes, and what every address should lead to after them."""

    def __init__(self, rt: Runtime, ada: User, seed: int) -> None:
        self.rt, self.ada, self.random = rt, ada, random.Random(seed)
        self.names: dict[tuple[str, str], int] = {}
        self.urls: dict[int, str] = {}
        self.disabled: set[int] = set()
        self.off: set[str] = set()

    async def change(self) -> set[str]:
        """Make one change; return the domains on which an address may lead elsewhere now."""
        host, name = self.random.choice(HOSTS), self.random.choice(NAMES)
        taken = self.names.get((host, name))
        made = sorted(self.urls)
        if host and self.random.random() < 0.15:
            return await self.switch(host)
        if host in self.off:
            return set()
        if taken is not None and self.random.random() < 0.5:
            return await self.release(host, name, taken)
        if taken is not None:
            return await self.toggle(taken)
        if made and self.random.random() < 0.4:
            return await self.add(host, name, self.random.choice(made))
        return await self.create(host, name)

    async def create(self, host: str, name: str) -> set[str]:
        url = f"https://destination.test/{len(self.urls)}"
        async with self.rt.db.write() as session:
            link = await make.link(session, self.rt, self.ada, url, name=name, domain=host)
        self.urls[link.id], self.names[host, name] = url, link.id
        return {host}

    async def add(self, host: str, name: str, number: int) -> set[str]:
        who, space = make.who(self.ada), make.space(self.rt)
        async with self.rt.db.write() as session:
            await service.add_name(session, space, who, number, name, host=host or None)
        self.names[host, name] = number
        return self.hosts_of(number)

    async def release(self, host: str, name: str, number: int) -> set[str]:
        touched, who, space = self.hosts_of(number), make.who(self.ada), make.space(self.rt)
        async with self.rt.db.write() as session:
            await service.release_name(session, space, who, number, name, host=host or None)
        del self.names[host, name]
        return touched

    async def toggle(self, number: int) -> set[str]:
        turn = service.enable_link if number in self.disabled else service.disable_link
        async with self.rt.db.write() as session:
            await turn(session, make.who(self.ada), number, self.rt.clock.now())
        self.disabled ^= {number}
        return self.hosts_of(number)

    async def switch(self, host: str) -> set[str]:
        state = DomainState.ACTIVE if host in self.off else DomainState.DISABLED
        patch, now = DomainPatch(state=state), self.rt.clock.now()
        async with self.rt.db.write() as session:
            await domains.change_domain(session, build_domain_hooks(), 0, host, patch, now)
        self.off ^= {host}
        return {host}

    def hosts_of(self, number: int) -> set[str]:
        return {host for (host, _), holder in self.names.items() if holder == number}

    async def check(self, node: Place) -> None:
        for host in HOSTS:
            for name in NAMES:
                answer = await node.get(f"/{name}", headers={"Host": host or "go.test"})
                assert (answer.status_code, answer.headers.get("location")) == self.expect(
                    host, name
                ), (host, name)

    def expect(self, host: str, name: str) -> tuple[int, str | None]:
        if host in self.off:
            return 421, None
        number = self.names.get((host, name))
        if number is None:
            return 404, None
        return (410, None) if number in self.disabled else (302, self.urls[number])


def cached_on_others(node: Place, touched: set[str]) -> set[bytes]:
    return {key for key in node.cached if key.split(b"/")[0].decode() not in touched}


async def play(rt: Runtime, ada: User, nodes: list[Place], clock: ManualClock, seed: int) -> None:
    story = Story(rt, ada, seed)
    async with rt.db.write() as session:
        for host in HOSTS[1:]:
            await make.domain(session, rt, host)
    for _ in range(STEPS):
        before = [set(node.cached) for node in nodes]
        touched = await story.change()
        for node, known in zip(nodes, before, strict=True):
            assert await node.engine.invalidator.poll()
            kept = {key for key in known if key.split(b"/")[0].decode() not in touched}
            assert cached_on_others(node, touched) == kept  # nothing else was dropped
        clock.advance(1)
        for node in nodes:
            await story.check(node)
    assert len(story.names) > 1


@pytest.mark.parametrize("seed", [1, 2])
async def test_changes_in_any_order_stay_on_their_domains(
    rt: Runtime, ada: User, nodes: list[Place], clock: ManualClock, seed: int
) -> None:
    await play(rt, ada, nodes, clock, seed)


@on_sqlite
@pytest.mark.parametrize("seed", [3])
async def test_the_same_with_a_shared_cache(
    redis_server: RedisServer,
    rt: Runtime,
    ada: User,
    nodes: list[Place],
    clock: ManualClock,
    seed: int,
) -> None:
    del redis_server
    await play(rt, ada, nodes, clock, seed)
    assert sum(node.engine.redis_cache.hits for node in nodes if node.engine.redis_cache) > 0
