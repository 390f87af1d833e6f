"""The cost of creating links: one token of the owner's hour per link, in its transaction."""

import pytest

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.limits.errors import RateLimited
from refract.limits.models import LimitBucket
from refract.links import service
from refract.links.service import CreatedLink, NewLink
from refract.names.errors import SlugTaken
from tests import make

PER_HOUR = 5


@pytest.fixture(autouse=True)
def limit(rt: Runtime) -> None:
    rt.settings = rt.settings.model_copy(update={"creates_per_hour": PER_HOUR})


async def tokens_left(rt: Runtime, owner: User) -> float | None:
    """Return None if nothing was ever charged."""
    async with rt.db.read() as session:
        bucket = await session.get(LimitBucket, f"creates:{owner.id}")
    return bucket.tokens if bucket is not None else None


async def create(rt: Runtime, owner: User, new: NewLink, *, charged: bool = True) -> CreatedLink:
    async with rt.db.write() as session:
        return await service.create_link(session, rt, owner, new, charged=charged)


async def create_many(rt: Runtime, owner: User, *news: NewLink, charged: bool = True) -> list[type]:
    async with rt.db.write() as session:
        results: list[CreatedLink | RefractError] = await service.create_links(
            session, rt, owner, news, charged=charged
        )
    return [type(result) for result in results]


async def test_a_new_link_is_charged_and_one_that_is_found_is_free(rt: Runtime, ada: User) -> None:
    await create(rt, ada, await make.new_link(rt))
    for _ in range(PER_HOUR):
        assert (await create(rt, ada, await make.new_link(rt, find_if_exists=True))).found

    assert await tokens_left(rt, ada) == PER_HOUR - 1


async def test_a_link_that_fails_or_is_past_the_limit_is_neither_made_nor_charged(
    rt: Runtime, ada: User
) -> None:
    await create(rt, ada, await make.new_link(rt, names=["taken"]))
    with pytest.raises(SlugTaken):
        await create(rt, ada, await make.new_link(rt, names=["taken"]))
    for _ in range(PER_HOUR - 1):
        await create(rt, ada, await make.new_link(rt))

    with pytest.raises(RateLimited):
        await create(rt, ada, await make.new_link(rt, names=["late"]))

    assert await tokens_left(rt, ada) == 0
    assert not (await create(rt, ada, await make.new_link(rt, names=["late"]), charged=False)).found


async def test_a_batch_is_charged_for_every_link_it_tries_and_refuses_the_rest(
    rt: Runtime, ada: User
) -> None:
    await create(rt, ada, await make.new_link(rt, names=["taken"]))
    news = [
        await make.new_link(rt, names=["taken"]),
        await make.new_link(rt, find_if_exists=True),
        *[await make.new_link(rt, names=[f"n{number}"]) for number in range(4)],
    ]

    assert await create_many(rt, ada, *news) == [
        SlugTaken,
        CreatedLink,
        CreatedLink,
        CreatedLink,
        RateLimited,
        RateLimited,
    ]
    assert await tokens_left(rt, ada) == 0


async def test_an_operator_and_an_administrator_pay_nothing(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
    news = [await make.new_link(rt) for _ in range(PER_HOUR + 1)]

    assert await create_many(rt, ada, *news, charged=False) == [CreatedLink] * len(news)
    assert await create_many(rt, root, *news) == [CreatedLink] * len(news)
    for new in news:
        await create(rt, ada, new, charged=False)
        await create(rt, root, new)

    assert (await tokens_left(rt, ada), await tokens_left(rt, root)) == (None, None)
