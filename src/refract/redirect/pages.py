"""The QR code of a short URL that is being named, for the link form."""

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from refract.domains.hosts import to_other_host
from refract.domains.models import MAX_HOST_LENGTH
from refract.domains.queries import load_domain
from refract.identity.dependencies import ReadCaller
from refract.links.queries.qr_styles import get_default_style
from refract.names.enums import NameTarget
from refract.names.grammar import (
    MAX_KEPT_CODE_LENGTH,
    build_short_url,
    join_code,
    validate_code,
    validate_name,
)
from refract.redirect.responses import render_qr_image
from refract.web.dependencies import Rt, page_router

router = page_router()


@router.get("/app/qr")
async def preview_qr_code(
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    name: Annotated[str, Query(max_length=MAX_KEPT_CODE_LENGTH)],
    domain: Annotated[str, Query(max_length=MAX_HOST_LENGTH)] = "",
    *,
    exact: bool = False,
) -> Response:
    """Draw the QR code that a link with this name has, whether there is one or not.

    With `exact` it is a code that an import has kept.

    Pages show it from their own host, where the link may be on another domain.
    """
    if exact:
        validate_code(name)
    else:
        validate_name(name, NameTarget.LINK, ())
    host = to_other_host(rt.settings.public_url, domain)
    if host is not None:
        async with rt.db.read() as session:
            await load_domain(session, host)
    url = build_short_url(rt.settings.public_url, join_code(host, name))
    usual = get_default_style(actor.user.preferences)
    response = await render_qr_image(rt, url, str(actor.user.id), request.query_params, usual)
    response.headers["Cache-Control"] = "private, max-age=3600"
    return response
