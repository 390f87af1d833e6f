"""API routes of a link's rules."""

from fastapi import Response

from refract.core.errors import InvalidStateTransition
from refract.core.schemas import Id
from refract.identity.access import AccessRight
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.links import queries, service
from refract.links.dependencies import Space, to_link_caller
from refract.links.errors import LinkNotFound, NotOwner, RulesTooLong, UnknownRule
from refract.links.models import Link
from refract.links.rules.checks import check_rules
from refract.links.rules.document import parse_rules
from refract.links.rules.schemas import LinkRulesIn, LinkRulesOut, build_rule_out
from refract.links.safety.errors import BlockedDestination, InvalidUrl, LinkLoop, MaliciousUrl
from refract.web.dependencies import IfMatchHeader, Rt, api_router, make_etag, parse_if_match
from refract.web.problems import problems

router = api_router("/links/{link_id}/rules", "links")


@router.get("", responses=problems(LinkNotFound, NotOwner))
async def read_link_rules(
    link_id: Id, actor: ReadCaller, rt: Rt, response: Response
) -> LinkRulesOut:
    """Get the rules of a link, for its owners."""
    async with rt.db.read() as session:
        link, _ = await queries.view_link(session, to_link_caller(actor), link_id, AccessRight.EDIT)
    return _build_rules_out(link, response)


@router.put(
    "",
    responses=problems(
        *(LinkNotFound, NotOwner, InvalidStateTransition, UnknownRule, RulesTooLong),
        *(InvalidUrl, LinkLoop, BlockedDestination, MaliciousUrl),
    ),
)
async def replace_link_rules(
    link_id: Id,
    given: LinkRulesIn,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    response: Response,
    if_match: IfMatchHeader = None,
) -> LinkRulesOut:
    """Replace the rules of a link. The first one that matches a visitor decides.

    Who matches none gets the destination of the link. With If-Match the update only applies to that
    version.
    """
    checked = await check_rules(rt, given.rules)
    async with rt.db.write() as session:
        locked = await service.replace_rules(
            session,
            space,
            to_link_caller(actor),
            link_id,
            checked,
            version=parse_if_match(if_match),
        )
        return _build_rules_out(locked.link, response)


def _build_rules_out(link: Link, response: Response) -> LinkRulesOut:
    response.headers["ETag"] = make_etag(link.version)
    rules = [build_rule_out(rule) for rule in parse_rules(link.rules)]
    return LinkRulesOut(link_id=link.id, version=link.version, rules=rules)
