"""API of the AI quota, its daily override, and tag rules."""

from fastapi import Response

from refract.core.schemas import Id
from refract.identity.dependencies import AdminCaller, ReadCaller, WriteCaller
from refract.identity.errors import AccountNotFound
from refract.library import service
from refract.library.errors import InvalidRule
from refract.library.queries import items as queries_items
from refract.library.schemas import QuotaOut, QuotaOverride, RuleList, RuleOut, RulesPut, UsageOut
from refract.library.service import quota, storage
from refract.tags.errors import InvalidTag
from refract.web.dependencies import Rt, api_router
from refract.web.problems import problems
from refract.web.routing import large_body

quota_router = api_router("/me/quota", "me")
usage_router = api_router("/me/usage", "me")
quota_admin_router = api_router("/admin/users/{user_id}/quota", "admin")


@quota_router.get("")
async def read_quota(actor: ReadCaller, rt: Rt, response: Response) -> QuotaOut:
    """Read today's quota of AI suggestions (UTC)."""
    async with rt.db.read() as session:
        standing = await quota.get_balance(session, rt, actor.user)
    response.headers.update(standing.headers)
    return QuotaOut.model_validate(standing)


@usage_router.get("")
async def read_usage(actor: ReadCaller, rt: Rt) -> UsageOut:
    """Read how much your library stores, and its limits. A limit of null means unlimited."""
    async with rt.db.read() as session:
        stored = await storage.get_usage(session, actor.user.id)
    return UsageOut(
        items=stored.items,
        items_limit=rt.settings.items_per_person,
        bytes=stored.bytes,
        bytes_limit=rt.settings.storage_per_person,
    )


@quota_admin_router.put("", responses=problems(AccountNotFound))
async def set_quota(user_id: Id, override: QuotaOverride, actor: AdminCaller, rt: Rt) -> QuotaOut:
    """Set a user's limit for one day, or reset it to their plan's.

    Returns their balance of today.
    """
    async with rt.db.write() as session:
        user = await quota.override_limit(
            session, rt, actor.user, user_id, override.day, override.limit
        )
        return QuotaOut.model_validate(await quota.get_balance(session, rt, user))


# Tag rules: `github.com → code`.

rules_router = api_router("/me/tag-rules", "me")


@rules_router.get("")
async def list_rules(actor: ReadCaller, rt: Rt) -> RuleList:
    """List your rules, in the order in which they are evaluated."""
    async with rt.db.read() as session:
        return RuleList(
            items=[
                RuleOut.model_validate(rule)
                for rule in await queries_items.list_tag_rules(session, actor.user.id)
            ]
        )


@rules_router.put("", responses=problems(InvalidRule, InvalidTag))
@large_body
async def replace_rules(body: RulesPut, actor: WriteCaller, rt: Rt) -> RuleList:
    """Replace all your rules."""
    async with rt.db.write() as session:
        rules = await service.replace_rules(session, rt, actor.user.id, body.items)
        return RuleList(items=[RuleOut.model_validate(rule) for rule in rules])
