"""Responses that the pages of lists share: rendering, redirects and form errors."""

from typing import Annotated, Any

from fastapi import Form, Request
from markupsafe import Markup
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.db.session import ReadSession
from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.threads import WorkThreadPool
from refract.domains.hosts import show_host
from refract.domains.queries import DomainCaller, list_usable_domains
from refract.identity.responses import render_response
from refract.lists import queries
from refract.lists.appearance import COVER_NAMES, LAYOUT_NAMES, PALETTE_NAMES
from refract.lists.dependencies import build_resolved_list, resolve_list_entries
from refract.lists.draft_owners import ListClient, format_titles, set_creator_cookie
from refract.lists.errors import TooManyUrls
from refract.lists.models import FetchStatus, LinkList, ListStatus
from refract.lists.pages.owners import load_owner_context
from refract.lists.presentation import build_actions
from refract.lists.schemas import MAX_BATCH_ENTRIES, EntriesResult, ListOut
from refract.names.grammar import format_name, join_name
from refract.web.i18n import gettext, ngettext, translate_error
from refract.web.middleware import FRAMING_PAGE_HEADERS
from refract.web.problems import ValidationFailed, list_field_errors

MAX_REASONS = 3
"""Reasons that are shown for rejected URLs, one per line."""
ListFormText = Annotated[str, Form()]


async def render_client_page(
    request: Request, rt: Runtime, client: ListClient, template: str, **context: Any
) -> Response:
    """Render a page whose forms are bound to the creator cookie, renewed for 30 days.

    Runs in a thread: a list may have a thousand entries.
    """
    bound = client.creator if client.is_anonymous else None
    response = await rt.singleton(WorkThreadPool).run(
        render_response, request, client.actor, template, bound=bound, **context
    )
    set_creator_cookie(response, rt, client)
    return response


async def render_list(
    request: Request,
    client: ListClient,
    rt: Runtime,
    list_id: int,
    *,
    status: int = 200,
    **context: Any,
) -> Response:
    async with rt.db.read() as session:
        caller = client.caller
        seen, actions = await queries.view_list_with_actions(session, caller, list_id)
        shown = await resolve_list_entries(session, rt, list_id, seen.epoch)
        is_draft = client.actor is not None and seen.link_list.is_anonymous
        unowned = is_draft and caller.is_owner_of(seen.link_list)
        waiting = await queries.list_claimable(session, client.caller.creator) if unowned else []
        owner_context = await load_owner_context(session, caller, seen.link_list)
        domains = await _list_domain_choices(session, rt, client, seen.link_list)
    out = await build_resolved_list(rt, seen, shown)
    is_published = seen.link_list.status == ListStatus.PUBLISHED
    shows_embed = is_published and rt.settings.list_embeds
    response = await render_client_page(
        request,
        rt,
        client,
        "lists/published.html" if is_published else "lists/builder.html",
        status=status,
        embed_code=build_embed_code(out) if shows_embed else None,
        page_title=out.title or gettext("Untitled list"),
        list=out,
        settled=seen.link_list.family_id != seen.link_list.id,
        waiting=[
            str(entry.id) for entry in out.entries if entry.fetch_status == FetchStatus.PENDING
        ],
        host=show_host(rt.settings.public_url, seen.link_list.domain),
        domain=seen.link_list.domain or "",
        domains=domains,
        palettes=PALETTE_NAMES,
        layouts=LAYOUT_NAMES,
        covers=COVER_NAMES,
        claimable=format_titles(waiting),
        actions=build_actions(actions if is_published else []).items,
        may_publish=not client.is_anonymous or rt.settings.effective_anonymous_lists == "publish",
        may_name=not client.is_anonymous or rt.settings.anonymous_names,
        **owner_context,
        **context,
    )
    response.headers.update(FRAMING_PAGE_HEADERS)
    return response


async def _list_domain_choices(
    session: ReadSession, rt: Runtime, client: ListClient, link_list: LinkList
) -> list[tuple[str, str]]:
    """Return the domains on which a draft may be published; none if there is no choice."""
    if client.actor is None or link_list.status != ListStatus.DRAFT:
        return []
    caller = DomainCaller(client.actor.user.id, client.actor.is_admin)
    hosts = [domain.host for domain in await list_usable_domains(session, caller)]
    if link_list.domain and link_list.domain not in hosts:
        hosts.append(link_list.domain)
    return [(host, show_host(rt.settings.public_url, host)) for host in ["", *hosts] if hosts]


def format_list_name(link_list: LinkList) -> str:
    """Return the name of a list as it is shown, with the host of another domain."""
    return format_name(join_name(link_list.domain, link_list.slug or ""))


def build_embed_code(out: ListOut) -> str:
    """Return HTML that shows a published list on another site."""
    return str(
        Markup(
            '<iframe src="{url}?embed" title="{title}" width="100%" height="600" loading="lazy"'
            ' style="border:0"></iframe>'
        ).format(url=out.url, title=out.title or out.slug)
    )


def is_autosave(request: Request) -> bool:
    """Return whether the form saved itself: then the page stays, and there is nothing to render."""
    return "x-autosave" in request.headers


def redirect_to_list(list_id: int, place: str = "") -> Response:
    return RedirectResponse(f"/app/lists/{list_id}{'#' + place if place else ''}", 303)


async def rerender_list(
    request: Request,
    client: ListClient,
    rt: Runtime,
    list_id: int,
    error: Exception,
    field: str,
    values: dict[str, str],
) -> Response:
    """Render the page again with the input and its error.

    Raise the error if the list is not accessible, or if the form saved itself.
    """
    if isinstance(error, RefractError) and (
        error.status in (401, 403, 404) or error.status >= 500 or is_autosave(request)
    ):
        raise error
    if isinstance(error, ValidationError) and is_autosave(request):
        raise ValidationFailed(errors=list_field_errors(error.errors()))
    return await render_list(
        request,
        client,
        rt,
        list_id,
        status=get_error_status(error),
        errors=get_field_errors(error, field),
        values=values,
    )


def get_error_status(error: Exception) -> int:
    return error.status if isinstance(error, RefractError) else 422


def get_field_errors(error: Exception, field: str) -> dict[str, str]:
    if isinstance(error, ValidationError):
        return {
            field_error.field: field_error.message
            for field_error in list_field_errors(error.errors())
        }
    return {field: translate_error(error) if isinstance(error, RefractError) else str(error)}


# Pasted URLs: parsed, counted, and returned to the form when they are rejected.


def parse_addresses(text: str) -> list[str]:
    """Return the URLs in a text, separated by white space."""
    return [word for line in text.splitlines() for word in line.split()]


def reject_too_many(typed: list[str]) -> None:
    if len(typed) > MAX_BATCH_ENTRIES:
        raise TooManyUrls(limit=MAX_BATCH_ENTRIES)


def format_result(result: EntriesResult) -> str:
    """Return the message after links were added: how many, and how many of them are duplicates."""
    duplicates = sum(row.entry is not None and row.entry.duplicate for row in result.results)
    if not duplicates:
        return ngettext("Added {n} link", "Added {n} links", result.created)
    return ngettext(
        "Added {n} link ({duplicates})",
        "Added {n} links ({duplicates})",
        result.created,
        duplicates=ngettext("{n} duplicate", "{n} duplicates", duplicates),
    )


def collect_rejected(typed: list[str], result: EntriesResult) -> dict[str, Any]:
    """Return the rejected URLs and the reasons, for the form."""
    rejected = [
        (typed[row.index], row.error.detail) for row in result.results if row.error is not None
    ]
    lines = [f"{url[:60]}: {why}" for url, why in rejected[:MAX_REASONS]]
    if (more := len(rejected) - MAX_REASONS) > 0:
        lines.append(ngettext("{n} more", "{n} more", more))
    return {
        "values": {"urls": "\n".join(url for url, _ in rejected)},
        "errors": {"urls": "\n".join(lines)},
    }
