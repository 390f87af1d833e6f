"""Changes of a link's rules on its page: add, edit, move, remove."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import Form, Path, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.access import AccessRight
from refract.identity.authentication import Caller
from refract.identity.dependencies import WriteCaller
from refract.links import queries, service
from refract.links.dependencies import Space, to_link_caller
from refract.links.errors import RulesTooLong
from refract.links.models import Link
from refract.links.pages.detail import render_link
from refract.links.pages.rule_forms import map_rule_errors, parse_rule, read_rule
from refract.links.pages.rule_tab import EMPTY, NEW
from refract.links.rules.checks import NEW_RULE, CheckedRules, check_rules
from refract.links.rules.document import MAX_RULES, LinkRule, parse_rules
from refract.links.rules.schemas import LinkRuleIn
from refract.names.service import Namespace
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext
from refract.web.return_path import get_referring_path

router = page_router()
RuleNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]
Change = Callable[[list[LinkRule]], list[LinkRule]]


@router.post("/app/links/{link_id}/rules")
async def add_rule(
    link_id: Id, request: Request, actor: WriteCaller, rt: Rt, space: Space
) -> Response:
    return await _save_rule(request, actor, rt, space, link_id, None)


@router.post("/app/links/{link_id}/rules/{number}")
async def change_rule(
    link_id: Id, number: RuleNumber, request: Request, actor: WriteCaller, rt: Rt, space: Space
) -> Response:
    return await _save_rule(request, actor, rt, space, link_id, number)


@router.post("/app/links/{link_id}/rules/{number}/move")
async def move_rule(
    link_id: Id,
    number: RuleNumber,
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    by: Annotated[int, Form(ge=-MAX_RULES, le=MAX_RULES)] = 0,
) -> Response:
    """Move a rule up or down by some places, as far as there are any."""

    def move(rules: list[LinkRule]) -> list[LinkRule]:
        numbers = [rule.number for rule in rules]
        if number in numbers:
            place = numbers.index(number)
            rules.insert(max(0, place + by), rules.pop(place))
        return rules

    return await _change_and_respond(
        request, actor, rt, space, link_id, move, gettext("Moved the rule")
    )


@router.post("/app/links/{link_id}/rules/{number}/remove")
async def remove_rule(
    link_id: Id, number: RuleNumber, request: Request, actor: WriteCaller, rt: Rt, space: Space
) -> Response:
    def remove(rules: list[LinkRule]) -> list[LinkRule]:
        return [rule for rule in rules if rule.number != number]

    return await _change_and_respond(
        request, actor, rt, space, link_id, remove, gettext("Removed the rule")
    )


async def _save_rule(
    request: Request, actor: Caller, rt: Runtime, space: Namespace, link_id: int, number: int | None
) -> Response:
    """Add or change a rule. The form is shown again, as it was typed, with what is wrong."""
    values = read_rule(await request.form())
    link = await _view_link(actor, rt, link_id)
    try:
        given = LinkRuleIn.model_validate(parse_rule(values, number))
        checked = await check_rules(rt, [given])
        rules = _put_rule(parse_rules(link.rules), checked.rules[0])
        await _replace_rules(
            actor, rt, space, link, CheckedRules(rules, unchecked=checked.unchecked)
        )
    except (ValidationError, RefractError) as exc:
        errors, status = _explain_failure(exc)
        return await render_link(
            *(request, actor, rt, link_id),
            status=status,
            tab="rules",
            opened=NEW if number is None else str(number),
            rule_values=EMPTY | values,
            rule_errors=errors,
        )
    message = gettext("Added the rule") if number is None else gettext("Saved the rule")
    return _redirect(request, rt, link_id, message)


def _explain_failure(exc: ValidationError | RefractError) -> tuple[dict[str, str], int]:
    """Return errors by field and the status. What no field can help against is raised."""
    if isinstance(exc, RefractError) and (exc.status in {401, 403, 404} or exc.status >= 500):
        raise exc
    return map_rule_errors(exc), 422 if isinstance(exc, ValidationError) else exc.status


async def _change_and_respond(
    request: Request,
    actor: Caller,
    rt: Runtime,
    space: Namespace,
    link_id: int,
    change: Change,
    message: str,
) -> Response:
    link = await _view_link(actor, rt, link_id)
    rules = parse_rules(link.rules)
    changed = change(list(rules))
    if changed == list(rules):
        return _redirect(request, rt, link_id, None)
    try:
        await _replace_rules(actor, rt, space, link, CheckedRules(changed, unchecked=False))
    except RefractError as exc:
        errors, status = _explain_failure(exc)
        return await render_link(
            *(request, actor, rt, link_id),
            status=status,
            tab="rules",
            rules_error=errors["destination"],
        )
    return _redirect(request, rt, link_id, message)


async def _view_link(actor: Caller, rt: Runtime, link_id: int) -> Link:
    async with rt.db.read() as session:
        link, _ = await queries.view_link(session, to_link_caller(actor), link_id, AccessRight.EDIT)
    return link


async def _replace_rules(
    actor: Caller, rt: Runtime, space: Namespace, link: Link, rules: CheckedRules
) -> None:
    """Replace the rules of this version of a link. A change since then is not overwritten."""
    version = frozenset({link.version})
    async with rt.db.write() as session:
        await service.replace_rules(
            session, space, to_link_caller(actor), link.id, rules, version=version
        )


def _put_rule(rules: Sequence[LinkRule], rule: LinkRule) -> list[LinkRule]:
    """Return the rules with a changed one; a new one, or one that is gone, is added at the end."""
    if rule.number in {kept.number for kept in rules}:
        return [rule if kept.number == rule.number else kept for kept in rules]
    if len(rules) >= MAX_RULES:
        raise RulesTooLong
    return [*rules, LinkRule(NEW_RULE, rule.destination, rule.conditions)]


def _redirect(request: Request, rt: Runtime, link_id: int, message: str | None) -> Response:
    """Return to the rules, with the visitor that was chosen there."""
    home = f"/app/links/{link_id}"
    came_from = urlsplit(get_referring_path(request, rt, home))
    kept: dict[str, Any] = dict(parse_qsl(came_from.query)) if came_from.path == home else {}
    kept.pop("rule", None)
    response = RedirectResponse(f"{home}?{urlencode(kept | {'tab': 'rules'})}", 303)
    if message is not None:
        flash.add(response, rt, message, undo=f"{home}/undo")
    return response
