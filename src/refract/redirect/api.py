"""API that explains where a path goes, without following it."""

from datetime import datetime
from functools import partial

from fastapi import Request

from refract.domains.hosts import split_address
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller
from refract.limits.shared_limits import MissLimit
from refract.names.grammar import TRAILING_PUNCTUATION, is_route
from refract.names.service import check_code_guess
from refract.redirect.asgi import RedirectApp
from refract.redirect.resolver import (
    CardOutcome,
    DeadOutcome,
    LimitedOutcome,
    LinkView,
    ListOutcome,
    MismatchOutcome,
    MissingOutcome,
    PasswordOutcome,
    PreviewOutcome,
    RedirectOutcome,
    RedirectTarget,
    ResolveOutcome,
    ShortLinkRequest,
    SignInOutcome,
    TargetState,
    WarningOutcome,
    is_found_by_guess,
    parse_path,
    resolve,
)
from refract.redirect.responses import build_redirect_headers
from refract.redirect.rules import choose_rule
from refract.redirect.schemas import ResolveIn, ResolveOut
from refract.redirect.simulation import build_visitor, explain_rules, get_number
from refract.redirect.visitors import Visitor, VisitorFacts
from refract.web.dependencies import Rt, api_router
from refract.web.networks import client_network
from refract.web.routing import read_only

router = api_router("/resolve", "links")


@router.post("")
@read_only
async def resolve_path(asked: ResolveIn, actor: ReadCaller, rt: Rt, request: Request) -> ResolveOut:
    """Explain where a path goes. Nothing is changed; misses count against their rate limit."""
    follow: RedirectApp = request.app.state.redirects
    host, path, query = split_own_path(asked.path, rt.settings.public_url)
    if host and follow.hooks.find_domain(host) is None:
        host, path = "", f"/{host}{path}"
    wish = parse_path(
        path.encode("utf-8", "surrogateescape"), query.encode("utf-8", "surrogateescape"), host
    )

    if not wish.name or is_route(wish.name, host):
        return _build_result(path, "own_page", 200, "This address belongs to Refract itself.")
    misses, network = rt.singleton(MissLimit), client_network(request, rt)
    check_code_guess(rt, wish.name, network, actor.user.id)
    now = rt.clock.now()
    visitor = build_visitor(asked.visitor, query, asked.visitor.at or now)
    resolve_at = partial(_resolve_as, request, actor, wish, visitor)
    outcome = await resolve_at(now)
    # Others may try rules at another time, not whether the link has started or expired by then.
    if asked.visitor.at is not None and await _is_manager(follow, actor, outcome):
        outcome = await resolve_at(asked.visitor.at)
    facts = rt.singleton(VisitorFacts)
    if isinstance(outcome, MissingOutcome) or (
        isinstance(outcome, DeadOutcome) and rt.settings.dead_link_status == 404
    ):
        await misses.charge_network(network, actor.user.id)
    elif is_found_by_guess(outcome):
        misses.check_code(network, actor.user.id)
    suggestions = (
        await follow.lookup.suggest(wish.name, actor)
        if isinstance(outcome, MissingOutcome | DeadOutcome) and not host
        else []
    )
    is_manager, outcome = await _reveal_to_managers(follow, wish, actor, outcome)
    said = _describe_outcome(path, wish, outcome, rt.settings.dead_link_status, suggestions)
    if isinstance(outcome, DeadOutcome | RedirectOutcome | WarningOutcome | PreviewOutcome):
        return _add_rules(said, outcome, facts, visitor, is_manager=is_manager)
    return said


async def _resolve_as(
    request: Request, actor: Caller, wish: ShortLinkRequest, visitor: Visitor, at: datetime
) -> ResolveOutcome:
    """Return what a visitor gets for a request at a time, as the caller may see it."""
    follow: RedirectApp = request.app.state.redirects
    facts = follow.rt.singleton(VisitorFacts)
    decided = await resolve(
        follow.lookup,
        wish,
        partial(_get_caller, actor),
        lambda: at,
        choose=lambda found: choose_rule(found, facts, visitor),
        is_crawler=lambda: facts.crawlers[visitor.agent],
    )
    return await _entry(follow, request, wish, decided)


async def _reveal_to_managers(
    follow: RedirectApp, wish: ShortLinkRequest, actor: Caller, outcome: ResolveOutcome
) -> tuple[bool, ResolveOutcome]:
    """Return whether the caller may edit the link; if so, a click limit hides nothing from them."""
    is_manager = await _is_manager(follow, actor, outcome)
    if is_manager and isinstance(outcome, LimitedOutcome):
        build = RedirectOutcome if wish.view is LinkView.FOLLOW else PreviewOutcome
        outcome = build(outcome.found, outcome.href)
    return is_manager, outcome


async def _is_manager(follow: RedirectApp, actor: Caller, outcome: ResolveOutcome) -> bool:
    """Return whether the caller may edit the link that was found."""
    if isinstance(outcome, MissingOutcome | ListOutcome | SignInOutcome | PasswordOutcome):
        return False
    return await follow.frontend.get_manage_url(actor, outcome.found) is not None


async def _get_caller(actor: Caller) -> Caller:
    return actor


def _add_rules(
    said: ResolveOut,
    outcome: DeadOutcome | RedirectOutcome | WarningOutcome | PreviewOutcome,
    facts: VisitorFacts,
    visitor: Visitor,
    *,
    is_manager: bool,
) -> ResolveOut:
    """Add the rule that decided. Only owners and administrators may know of the other rules."""
    if said.outcome == "deleted" and not is_manager:
        return said.model_copy(update={"link_id": None})  # nor of a deleted link
    if isinstance(outcome, DeadOutcome) or not outcome.found.rules:
        return said
    rules = explain_rules(outcome.found, facts, visitor) if is_manager else None
    return said.model_copy(update={"rule": get_number(outcome.found), "rules": rules})


async def _entry(
    follow: RedirectApp, request: Request, wish: ShortLinkRequest, outcome: ResolveOutcome
) -> ResolveOutcome:
    """Return the outcome of a list entry; any other outcome unchanged."""
    if not (
        isinstance(outcome, ListOutcome)
        and wish.extra.strip("/")
        and follow.hooks.lists is not None
    ):
        return outcome
    answer = await follow.hooks.lists(request.scope, outcome.found, wish)
    return (
        answer
        if isinstance(answer, RedirectOutcome | WarningOutcome | DeadOutcome | MissingOutcome)
        else outcome
    )


def split_own_path(typed: str, public_url: str) -> tuple[str, str, str]:
    """Return host, path and query of a short URL. The host is empty for the default domain."""
    bare, _, query = typed.partition("#")[0].partition("?")
    host, path = split_address(public_url, bare)
    return host or "", f"/{path}", query


def _describe_outcome(  # noqa: C901, PLR0911 - one per outcome
    path: str,
    request: ShortLinkRequest,
    outcome: ResolveOutcome,
    dead_status: int,
    suggestions: list[str],
) -> ResolveOut:
    match outcome:
        case RedirectOutcome(found, href):
            why = _explain_redirect(found, href, request)
            said = _build_result(path, "redirect", found.redirect_status, why, found, href)
            return said.model_copy(update={"headers": _list_headers(found, href)})
        case WarningOutcome(found, href):
            why = (
                f"The {found.kind} {found.address} is flagged ({found.flag_reason}): visitors see a"
                " preview first."
            )
            return _build_result(path, "preview", 200, why, found, href)
        case CardOutcome(found):
            why = f"Crawlers of chats get the preview card of {found.address}."
            return _build_result(path, "card", 200, why, found)
        case PreviewOutcome(found, href):
            code = request.view is LinkView.QR
            why = f"The QR code of {found.address}." if code else f"The preview of {found.address}."
            return _build_result(path, "qr" if code else "preview", 200, why, found, href)
        case ListOutcome(found) if request.view is LinkView.QR:
            why = f"The QR code of the published list {found.address}."
            return _build_result(path, "qr", 200, why, found)
        case ListOutcome(found):
            why = f"The name {found.address} is a published list."
            return _build_result(path, "list", 200, why, found)
        case MismatchOutcome(found, reason, usage):
            why = f"{reason} Write it like {usage}."
            return _build_result(path, "does_not_fit", 404, why, found)
        case PasswordOutcome(found):
            why = f"The link {found.address} asks for a password."
            return _build_result(path, "password", 200, why, found)
        case LimitedOutcome(found):
            why = f"The link {found.address} has a click limit: only its owners see where it goes."
            return _build_result(path, "limited", 200, why, found)
        case DeadOutcome() if told := _describe_dead(path, request, outcome, dead_status):
            return told
        case MissingOutcome() | SignInOutcome() | DeadOutcome():
            pass
    return _build_result(
        path, "not_found", 404, f"{request.host}/{request.display_name} doesn't exist."
    ).model_copy(update={"suggestions": suggestions})


def _list_headers(found: RedirectTarget, href: str) -> dict[str, str]:
    headers = build_redirect_headers(
        found.redirect_status,
        href.encode("ascii"),
        cacheable=found.may_be_kept,
        noindex=found.noindex,
    )
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}


_SUBSTITUTED_WHEN: dict[TargetState, str] = {
    "scheduled": "before it starts",
    "expired": "after it has expired",
    "limit_reached": "once its click limit is reached",
}


def _describe_dead(
    path: str, request: ShortLinkRequest, outcome: DeadOutcome, dead_status: int
) -> ResolveOut | None:
    found, state = outcome.found, outcome.state
    substitute = found.get_substitute(state)
    if substitute is not None and request.view is LinkView.FOLLOW:
        why = f"The {found.kind} {found.address} leads elsewhere {_SUBSTITUTED_WHEN[state]}."
        return _build_result(path, "redirect", 302, why, found, substitute)
    if dead_status == 404:  # dead links look like missing ones, here too
        return None
    why = f"The {found.kind} {found.address} is {state.replace('_', ' ')}."
    return _build_result(path, state, 404 if state == "scheduled" else dead_status, why, found)


def _explain_redirect(found: RedirectTarget, href: str, request: ShortLinkRequest) -> str:
    """Return a sentence about what was found, and how path and query are used."""
    if found.kind == "entry":
        return f"The list entry {found.address} goes to {href}."
    kind = "code" if found.by_code else "name"
    trimmed = (
        f", without the trailing punctuation of {request.display_name}"
        if request.name.endswith(tuple(TRAILING_PUNCTUATION))
        else ""
    )
    template = found.active_template
    by_rule = f" by rule {found.chosen.number}" if found.chosen else ""
    where = template.href if template else ""
    parts = [f"The {kind} {found.address} goes to {where}{by_rule}{trimmed}"]
    if template and template.placeholders:
        parts.append("the path fills its placeholders")
    elif any(request.segments):
        parts.append("the path is appended")
    if request.query:
        parts.append("the query is forwarded" if found.forward_query else "the query is dropped")
    return "; ".join(parts) + "."


def _build_result(
    path: str,
    outcome: str,
    status: int,
    why: str,
    found: RedirectTarget | None = None,
    location: str | None = None,
) -> ResolveOut:
    return ResolveOut.model_validate(
        {
            "path": path,
            "outcome": outcome,
            "status": status,
            "location": location,
            "why": why,
            "name": found.name if found else None,
            "link_id": found.id if found and found.kind == "link" else None,
            "rule": None,
            "rules": None,
            "headers": None,
            "suggestions": [],
        }
    )
