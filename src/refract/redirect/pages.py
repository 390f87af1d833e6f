"""The QR code of a short URL that is being named, for the link form."""

from typing import Annotated

from fastapi import Query
from starlette.datastructures import QueryParams
from starlette.responses import Response

from refract.identity.dependencies import ReadCaller
from refract.names.enums import NameTarget
from refract.names.grammar import validate_name
from refract.redirect.responses import render_qr_image
from refract.web.dependencies import Rt, page_router

router = page_router()


@router.get("/app/qr")
async def preview_qr_code(
    actor: ReadCaller, rt: Rt, name: Annotated[str, Query(max_length=50)]
) -> Response:
    """Draw the QR code that a link with this name has, whether there is one or not."""
    validate_name(name, NameTarget.LINK, ())
    response = await render_qr_image(
        rt, f"{rt.settings.public_url}/{name}", str(actor.user.id), QueryParams()
    )
    response.headers["Cache-Control"] = "private, max-age=3600"
    return response
