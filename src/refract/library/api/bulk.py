"""Several items in one call, each with its own result."""

from typing import Any

from fastapi import Response
from pydantic import ValidationError

from refract.core.errors import RefractError
from refract.identity.dependencies import WriteCaller
from refract.library import service
from refract.library.dependencies import ON_CAPTURE, TAG_ERRORS
from refract.library.errors import EmptyText
from refract.library.queries.serializers import serialize_items
from refract.library.recognition import split_paste
from refract.library.schemas import (
    MAX_BULK_ITEMS,
    ItemCreate,
    ItemRow,
    ItemRowError,
    ItemsCreate,
    ItemsResult,
    NewItemStates,
)
from refract.library.service import CapturedItem
from refract.web.dependencies import Rt, api_router
from refract.web.problems import ValidationFailed, list_field_errors, problems
from refract.web.routing import large_body, large_response

router = api_router("/items", "items")


@router.post("/bulk", responses=problems(*TAG_ERRORS, *ON_CAPTURE, EmptyText))
@large_body
@large_response
async def capture_items(
    body: ItemsCreate, actor: WriteCaller, rt: Rt, response: Response
) -> ItemsResult:
    """Save up to 200 texts, or a pasted list of URLs.

    A text that can't be saved does not affect the others.
    """
    texts = [*body.texts, *split_paste(body.paste or "")]
    if not texts:
        raise EmptyText
    shared: dict[str, Any] = {
        **{name: getattr(body, name) for name in ("enrich", *NewItemStates.model_fields)},
        "tag_ids": body.tag_ids,
        "new_tags": body.new_tags,
    }
    rows = [_parse_item(text, shared) for text in texts[:MAX_BULK_ITEMS]]
    async with rt.db.write() as session:
        made = {
            index: await service.capture_item(session, rt, actor.user, row)
            for index, row in enumerate(rows)
            if isinstance(row, ItemCreate)
        }
        cards = dict(
            zip(
                made,
                await serialize_items(session, [captured.item for captured in made.values()]),
                strict=True,
            )
        )
    _set_quota_headers(response, list(made.values()))
    results = [
        (
            ItemRow(index=index, status=row.status, error=_build_row_error(row))
            if isinstance(row, RefractError)
            else ItemRow(index=index, status=201, item=cards[index])
        )
        for index, row in enumerate(rows)
    ]
    return ItemsResult(results=results, created=len(made), failed=len(rows) - len(made))


def _parse_item(text: str, shared: dict[str, Any]) -> ItemCreate | RefractError:
    try:
        return ItemCreate.model_validate({"text": text, **shared})
    except ValidationError as exc:
        return ValidationFailed(errors=list_field_errors(exc.errors()))


def _build_row_error(error: RefractError) -> ItemRowError:
    return ItemRowError(
        code=error.code,
        detail=error.message,
        errors=[
            {"field": field_error.field, "message": field_error.message}
            for field_error in error.errors
        ],
    )


def _set_quota_headers(response: Response, made: list[CapturedItem]) -> None:
    if made:
        response.headers.update(made[-1].quota.headers)
