"""The API route that creates up to a thousand links, each row with its own result."""

from typing import Any

from pydantic import ValidationError

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.identity.dependencies import WriteCaller
from refract.limits.errors import RateLimited
from refract.links import service
from refract.links.campaigns.service import apply_templates
from refract.links.dependencies import charge_code_like_names
from refract.links.schemas import BulkCreate, BulkResult, BulkRow, BulkRowError, LinkCreate
from refract.links.service import CreatedLink, NewLink
from refract.web.dependencies import Rt, api_router
from refract.web.problems import ValidationFailed, list_field_errors
from refract.web.routing import large_body, large_response

router = api_router("/links", "links")
BulkOutcome = CreatedLink | RefractError


class _DryRunRollback(Exception):
    """Rolls back the transaction of a dry run."""

    def __init__(self, result: BulkResult) -> None:
        super().__init__()
        self.result = result


@router.post("/bulk")
@large_body
@large_response
async def create_links(body: BulkCreate, actor: WriteCaller, rt: Rt) -> BulkResult:
    """Create up to 1,000 links. A row that fails does not affect the others.

    A dry run returns what would happen.
    """
    if body.dry_run:
        async with rt.db.write() as session:
            await service.charge_trial(session, rt, actor.user, len(body.links))
    rows = await _check(rt, actor, body.links)
    new_links = {index: row for index, row in rows.items() if isinstance(row, NewLink)}
    outcomes: dict[int, BulkOutcome] = {
        index: row for index, row in rows.items() if isinstance(row, RefractError)
    }
    try:
        async with rt.db.write() as session:
            created = await service.create_links(session, rt, actor.user, list(new_links.values()))
            outcomes |= dict(zip(new_links, created, strict=True))
            result = _build_result(
                rt, outcomes
            )  # inside, because a rollback leaves nothing to report
            if body.dry_run:
                raise _DryRunRollback(result)
    except _DryRunRollback as exc:
        return exc.result
    return result


async def _check(
    rt: Runtime, actor: Caller, rows: list[dict[str, Any]]
) -> dict[int, NewLink | RefractError]:
    """Return each row as a new link, or why it cannot be one.

    Destinations are checked together, with no transaction open. Names that spell codes count
    against the limit of misses.
    """
    read = dict(enumerate(map(_parse_row, rows)))
    for index, row in read.items():
        if isinstance(row, LinkCreate):
            try:
                await charge_code_like_names(rt, actor, row.names)
            except RateLimited as exc:
                read[index] = exc
    valid = {index: row for index, row in read.items() if isinstance(row, LinkCreate)}
    applied = await apply_templates(rt, actor.user.id, list(valid.values()))
    read |= dict(zip(valid, applied, strict=True))
    valid = {index: row for index, row in read.items() if isinstance(row, LinkCreate)}
    checked = await service.check_links(rt, list(valid.values()))
    refused = {index: row for index, row in read.items() if isinstance(row, RefractError)}
    return refused | dict(zip(valid, checked, strict=True))


def _parse_row(row: dict[str, Any]) -> LinkCreate | RefractError:
    try:
        return LinkCreate.model_validate(row)
    except ValidationError as exc:
        return ValidationFailed(errors=list_field_errors(exc.errors()))


def _build_result(rt: Runtime, outcomes: dict[int, BulkOutcome]) -> BulkResult:
    now = rt.clock.now()
    rows = [_build_row(rt, index, outcomes[index], now) for index in sorted(outcomes)]
    return BulkResult(
        results=rows,
        created=sum(row.status == 201 for row in rows),
        failed=sum(row.status >= 400 for row in rows),
    )


def _build_row(rt: Runtime, index: int, outcome: BulkOutcome, now: Any) -> BulkRow:
    if isinstance(outcome, RefractError):
        errors = [{"field": error.field, "message": error.message} for error in outcome.errors]
        return BulkRow(
            index=index,
            status=outcome.status,
            error=BulkRowError(code=outcome.code, detail=outcome.message, errors=errors),
        )
    return BulkRow(
        index=index,
        status=200 if outcome.found else 201,
        link=outcome.card.to_schema(rt.settings.public_url, now),
    )
