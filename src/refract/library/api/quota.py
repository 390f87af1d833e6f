"""What is left of the assistant's budget, and giving somebody more for a day."""

from fastapi import Response

from refract.core.schema import Id
from refract.identity.actors import Admin, Reader
from refract.identity.errors import AdministratorsOnly
from refract.library import quota, usage
from refract.library.edge import ASKING, GUARDED
from refract.library.errors import NoSuchPerson
from refract.library.schemas import QuotaOut, QuotaOverride, UsageOut
from refract.web.problems import problems
from refract.web.toolkit import Rt, api_router

router = api_router("/me/quota", "me")
usage_router = api_router("/me/usage", "me")
admin_router = api_router("/admin/users/{user_id}/quota", "admin")


@router.get("", responses=GUARDED)
async def read_quota(actor: Reader, rt: Rt, response: Response) -> QuotaOut:
    """Today's budget of model descriptions, by UTC."""
    async with rt.db.read() as session:
        standing = await quota.standing(session, rt, actor.user)
    response.headers.update(standing.headers)
    return QuotaOut.model_validate(standing)


@usage_router.get("", responses=GUARDED)
async def read_usage(actor: Reader, rt: Rt) -> UsageOut:
    """What my library takes, and what it may take. A limit that is null is none."""
    async with rt.db.read() as session:
        stored = await usage.stored_by(session, actor.user.id)
    return UsageOut(
        items=stored.items,
        items_limit=rt.settings.items_per_person,
        bytes=stored.bytes,
        bytes_limit=rt.settings.storage_per_person,
    )


@admin_router.put("", responses=problems(*ASKING, AdministratorsOnly, NoSuchPerson))
async def set_quota(user_id: Id, wish: QuotaOverride, actor: Admin, rt: Rt) -> QuotaOut:
    """Give a person another limit for one day, or their plan's again. The answer is how they stand today."""
    async with rt.db.write() as session:
        user = await quota.give_limit(session, rt, actor.user, user_id, wish.day, wish.limit)
        return QuotaOut.model_validate(await quota.standing(session, rt, user))
