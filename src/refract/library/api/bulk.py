"""Several items in one call, each with its own result."""

from typing import Any

from fastapi import Response
from pydantic import ValidationError

from refract.core.errors import RefractError
from refract.identity.actors import Writer
from refract.library import service
from refract.library.capturing import split
from refract.library.cards import cards_of
from refract.library.edge import ASKING, TAGGING
from refract.library.errors import EmptyText
from refract.library.schemas import MOST_IN_BULK, ItemCreate, ItemRow, ItemRowError, ItemsCreate, ItemsResult
from refract.library.service import Made
from refract.web.problems import ValidationFailed, field_errors, problems
from refract.web.routes import large_body
from refract.web.toolkit import IdempotencyKey, Rt, api_router

router = api_router("/items", "items")


@router.post("/bulk", responses=problems(*ASKING, *TAGGING, EmptyText))
@large_body
async def capture_items(
    asked: ItemsCreate,
    actor: Writer,
    rt: Rt,
    response: Response,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> ItemsResult:
    """Save up to 200 texts, or a pasted list of addresses. A text that cannot be saved takes nothing from the others."""
    texts = [*asked.texts, *split(asked.paste or "")]
    if not texts:
        raise EmptyText
    shared: dict[str, Any] = {"enrich": asked.enrich, "tag_ids": asked.tag_ids, "new_tags": asked.new_tags}
    rows = [_read(text, shared) for text in texts[:MOST_IN_BULK]]
    async with rt.db.write() as session:
        made = {index: await service.capture(session, rt, actor.user, row) for index, row in enumerate(rows) if isinstance(row, ItemCreate)}
        cards = dict(zip(made, await cards_of(session, [one.item for one in made.values()]), strict=True))
    _tell_quota(response, list(made.values()))
    results = [
        ItemRow(index=index, status=row.status, error=_error(row))
        if isinstance(row, RefractError)
        else ItemRow(index=index, status=201, item=cards[index])
        for index, row in enumerate(rows)
    ]
    return ItemsResult(results=results, created=len(made), failed=len(rows) - len(made))


def _read(text: str, shared: dict[str, Any]) -> ItemCreate | RefractError:
    try:
        return ItemCreate.model_validate({"text": text, **shared})
    except ValidationError as wrong:
        return ValidationFailed(errors=field_errors(wrong.errors()))


def _error(row: RefractError) -> ItemRowError:
    return ItemRowError(code=row.code, detail=row.message, errors=[{"field": one.field, "message": one.message} for one in row.errors])


def _tell_quota(response: Response, made: list[Made]) -> None:
    if made:
        response.headers.update(made[-1].quota.headers)
