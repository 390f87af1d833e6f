"""Responses that are too long to be stored for an Idempotency-Key."""

from typing import Any

from refract.links.schemas import MAX_BULK_LINKS
from refract.lists import service
from refract.lists.access import ListCaller as ListMaker
from refract.web.idempotency import MAX_STORED_BYTES
from tests import make
from tests.errors.provoking import provokes
from tests.errors.site import Asking, unique

_LIST = "/lists/{list_id}"
_ENTRIES = 800


async def ask_twice(asking: Asking, path: str | None = None, **given: Any) -> None:
    path, more = path or await asking.target(), {"Idempotency-Key": unique("key")}
    first = await asking.ask(path, more=more, **given)
    assert len(first.content) > MAX_STORED_BYTES, first.text[:300]
    await asking.ask(path, more=more, **given)


@provokes("RESPONSE_TOO_LONG", "POST /links/bulk")
async def thousand_long_links(asking: Asking) -> None:
    rows = [
        {"destination": f"https://example.com/{number}", "notes": "n" * 2000}
        for number in range(MAX_BULK_LINKS)
    ]
    await ask_twice(asking, json={"links": rows})


@provokes("RESPONSE_TOO_LONG", "POST /items/bulk")
async def many_long_texts(asking: Asking) -> None:
    await ask_twice(
        asking,
        json={"texts": [f"{number} {'é' * 6_000}" for number in range(200)], "enrich": False},
    )


async def long_list(asking: Asking) -> int:
    urls = [f"https://example.com/{number}/{'x' * 1_900}" for number in range(_ENTRIES)]
    async with asking.rt.db.write() as session:
        return (await make.list_of(session, asking.rt, ListMaker(asking.world.owner.id), *urls)).id


@provokes("RESPONSE_TOO_LONG", f"POST {_LIST}/slug", f"POST {_LIST}/publish")
async def long_draft(asking: Asking) -> None:
    await ask_twice(
        asking, await asking.target(list_id=str(await long_list(asking))), json={"slug": unique()}
    )


@provokes(
    "RESPONSE_TOO_LONG",
    f"POST {_LIST}/editions",
    f"POST {_LIST}/undo",
    "POST /admin/lists/{list_id}/undo",
)
async def long_published_list(asking: Asking) -> None:
    list_id, maker = await long_list(asking), ListMaker(asking.world.owner.id)
    async with asking.rt.db.write() as session:
        await service.publish_list(session, make.space(asking.rt), maker, list_id)
        if asking.path.endswith("undo"):
            await service.delete_list(session, asking.rt.ids, maker, list_id, asking.rt.clock.now())
    await ask_twice(asking, await asking.target(list_id=str(list_id)))
