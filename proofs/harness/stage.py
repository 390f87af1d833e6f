"""What a proof puts on a site before it begins, and the options that every proof takes."""

import argparse
import os
import random
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from proofs.harness.report import Report
from refract.core.runtime import Runtime
from refract.domains.schemas import DomainCreate
from refract.domains.service import create_domain
from refract.identity import keys
from refract.identity.models import Scope, User
from refract.identity.users import ensure_owner
from refract.links import service
from refract.links.schemas import LinkCreate
from refract.links.service import CreatedLink, NewLink, check_links
from refract.registry import build_domain_hooks


class Planted(NamedTuple):
    """A link that is there before the proof begins."""

    id: int
    name: str
    destination: str


async def owner_of(rt: Runtime) -> User:
    async with rt.db.write() as session:
        return (await ensure_owner(session, rt))[0]


async def make_key(rt: Runtime) -> str:
    """A key of the owner's that may do everything."""
    owner = await owner_of(rt)
    async with rt.db.write() as session:
        return (
            await keys.create_key(
                session, rt, owner, "proof", [Scope.READ, Scope.WRITE, Scope.ADMIN]
            )
        )[1]


async def plant(
    rt: Runtime,
    count: int,
    *,
    prefix: str = "link",
    host: str = "example.com",
    visibility: str = "unlisted",
    **given: Any,
) -> list[Planted]:
    """Links made the way the program makes them, each with a name and a destination of its own."""
    owner = await owner_of(rt)
    names = [f"{prefix}-{number}" for number in range(count)]
    fields: dict[str, Any] = {"visibility": visibility, **given}
    checked = await check_links(
        rt,
        [
            LinkCreate(destination=f"https://{host}/{name}", names=[name], **fields)
            for name in names
        ],
    )
    news = [new for new in checked if isinstance(new, NewLink)]
    async with rt.db.write() as session:
        made = await service.create_links(session, rt, owner, news, charged=False)
    cards = [created.card for created in made if isinstance(created, CreatedLink)]
    assert len(cards) == count, made
    return [Planted(card.link.id, card.names[0], card.link.destination) for card in cards]


async def add_domain(rt: Runtime, host: str) -> None:
    """Add a domain, as an administrator would."""
    owner, now = await owner_of(rt), rt.clock.now()
    async with rt.db.write() as session:
        await create_domain(
            session, build_domain_hooks(), owner.id, host, DomainCreate(host=host), now
        )


Prove = Callable[[Path, str, str, int], AsyncIterator[Report]]
"""From an empty directory, a database, a size and a seed to what was found, part by part."""


def main(
    name: str, arguments: list[str], description: str | None, databases: str, prove: Prove
) -> int:
    """The command line of a proof: 0 when every promise held, on every database asked for."""
    parser = argparse.ArgumentParser(
        prog=f"make proof {name}",
        description=description,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--size", choices=("short", "full"), default="full")
    parser.add_argument("--seed", type=int, help="Left out: a random one, printed.")
    parser.add_argument(
        "--database",
        default=databases,
        help=f"By comma, of sqlite, postgresql and mysql. Left out: {databases}.",
    )
    parser.add_argument(
        "--untimed", action="store_true", help="Forgive what is about seconds: the machine is busy."
    )
    parser.add_argument("--save", action="store_true", help="Write the figures to proofs/results.")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed

    async def run(dialect: str) -> bool:
        held, number = True, 0
        with home() as place:
            async for report in prove(place, dialect, given.size, seed):
                number += 1
                held = (report.show() or (given.untimed and not report.broken)) and held
                if given.save:
                    report.save(f"{name}-{dialect}-{number}")
        return held

    verdicts = [uvloop.run(run(dialect)) for dialect in given.database.split(",")]
    return 0 if all(verdicts) else 1


@contextmanager
def home() -> Iterator[Path]:
    """A directory for everything a proof leaves behind, gone with it.

    REFRACT_PROOF_KEEP keeps it, for those who look for a fault.
    """
    path = Path(tempfile.mkdtemp(prefix="refract-proof-"))
    try:
        yield path
    finally:
        if os.environ.get("REFRACT_PROOF_KEEP"):
            print(f"kept: {path}")
        else:
            shutil.rmtree(path, ignore_errors=True)
