"""`POST /resolve`: where a path would lead, and why, without going there."""

from urllib.parse import urlsplit

from fastapi import Request

from refract.core.errors import Unavailable
from refract.identity.actors import Reader
from refract.identity.errors import BadCredentials, MissingScope, OriginUnproven, SignInNeeded
from refract.identity.visitors import Actor
from refract.limits.errors import RateLimited
from refract.limits.service import MissLimit
from refract.names.grammar import is_reserved
from refract.redirect.follow import Follow
from refract.redirect.resolve import Dead, Found, Leads, Listed, Missing, Outcome, Shows, SignInFirst, Unfit, Warns, resolve
from refract.redirect.schemas import ResolveIn, ResolveOut
from refract.redirect.wish import View, Wish, forgiven, read_wish
from refract.web.networks import client_network
from refract.web.problems import ValidationFailed, problems
from refract.web.toolkit import IdempotencyKey, Rt, api_router

router = api_router("/resolve", "links")
GUARDED = problems(SignInNeeded, BadCredentials, MissingScope, OriginUnproven, RateLimited, Unavailable, ValidationFailed)


@router.post("", responses=GUARDED)
async def resolve_path(
    asked: ResolveIn,
    actor: Reader,
    rt: Rt,
    request: Request,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ResolveOut:
    """Say where a path would lead, and why. Nothing changes; what does not exist counts against the limit of misses."""
    follow: Follow = request.app.state.redirects
    path, query = own_path(asked.path, rt.settings.public_url)
    wish = read_wish(path.encode("utf-8", "surrogateescape"), query.encode("utf-8", "surrogateescape"))

    async def who() -> Actor:
        return actor

    if not wish.name or is_reserved(wish.name):
        return _out(path, "own_page", 200, "This address belongs to Refract itself.")
    outcome = await _entry(follow, request, wish, await resolve(follow.lookup, wish, who, rt.clock.now))
    if isinstance(outcome, Missing) or (isinstance(outcome, Dead) and rt.settings.dead_link_status == 404):
        await rt.part(MissLimit).charge_network(client_network(request, rt), actor.user.id)
    suggestions = await follow.lookup.suggest(wish.name, actor) if isinstance(outcome, Missing | Dead) else []
    said = _said(path, wish, outcome, rt.settings.dead_link_status, suggestions)
    if said.outcome == "deleted" and isinstance(outcome, Dead) and await follow.surface.manage_url(actor, outcome.found) is None:
        return said.model_copy(update={"link_id": None})  # a deleted link is seen by its owners and administrators alone
    return said


async def _entry(follow: Follow, request: Request, wish: Wish, outcome: Outcome) -> Outcome:
    """Return what becomes of an entry of a list; any other outcome as it is."""
    if not (isinstance(outcome, Listed) and wish.extra.strip("/") and follow.hooks.lists is not None):
        return outcome
    answer = await follow.hooks.lists(request.scope, outcome.found, wish)
    return answer if isinstance(answer, Leads | Warns | Dead | Missing) else outcome


def own_path(typed: str, public_url: str) -> tuple[str, str]:
    """Path and query of what was typed, whether it names our host or not."""
    text = typed.strip()
    host = urlsplit(public_url).netloc
    for prefix in (public_url, f"//{host}", f"{host}/"):
        if text.lower().startswith(prefix):
            text = text[len(prefix.rstrip("/")) :]
            break
    path, _, query = text.partition("#")[0].partition("?")
    return f"/{path.lstrip('/')}", query


def _said(  # noqa: PLR0911 - one for each outcome
    path: str, wish: Wish, outcome: Outcome, dead_status: int, suggestions: list[str]
) -> ResolveOut:
    match outcome:
        case Leads(found, href):
            why = f"The entry /{found.name} of a list leads to {href}." if found.kind == "entry" else _how(found, wish)
            return _out(path, "redirect", found.redirect_status, why, found, href)
        case Warns(found, href):
            why = f"The {found.kind} /{found.name} is flagged ({found.flag_reason}): visitors see its preview before they are led on."
            return _out(path, "preview", 200, why, found, href)
        case Shows(found, href):
            code = wish.view is View.QR
            why = f"The QR code of /{found.name}." if code else f"The page that says where /{found.name} leads."
            return _out(path, "qr" if code else "preview", 200, why, found, href)
        case Listed(found) if wish.view is View.QR:
            return _out(path, "qr", 200, f"The QR code of the published list /{found.name}.", found)
        case Listed(found):
            return _out(path, "list", 200, f"The name /{found.name} is a published list.", found)
        case Unfit(found, reason, usage):
            return _out(path, "does_not_fit", 404, f"{reason} Write it like {usage}.", found)
        case Dead(found, state) if dead_status != 404:  # else nobody is to see the difference, here as little as there
            return _out(path, state, dead_status, f"The {found.kind} /{found.name} is {state.replace('_', ' ')}.", found)
        case Missing() | SignInFirst() | Dead():
            pass
    return _out(path, "not_found", 404, f"Nothing lives at /{wish.shown}.").model_copy(update={"suggestions": suggestions})


def _how(found: Found, wish: Wish) -> str:
    """One sentence: what was recognised, and what became of path and query."""
    kind = "code" if found.by_code else "name"
    trimmed = f", once the punctuation behind it is taken off {wish.shown}" if forgiven(wish.name) and wish.name != found.name else ""
    template = found.template
    said = [f"The {kind} /{found.name} leads to {template.href if template else ''}{trimmed}"]
    if template and template.placeholders:
        said.append("the path fills its placeholders")
    elif any(wish.segments):
        said.append("the path is added behind it")
    if wish.query:
        said.append("the query goes along" if found.forward_query else "the query does not go along")
    return "; ".join(said) + "."


def _out(path: str, outcome: str, status: int, why: str, found: Found | None = None, location: str | None = None) -> ResolveOut:
    return ResolveOut.model_validate(
        {
            "path": path,
            "outcome": outcome,
            "status": status,
            "location": location,
            "why": why,
            "name": found.name if found else None,
            "link_id": found.id if found and found.kind == "link" else None,
            "suggestions": [],
        }
    )
