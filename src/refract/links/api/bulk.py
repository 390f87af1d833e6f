"""A thousand links in one call, each row with its own result."""

from typing import Any

from pydantic import ValidationError

from refract.core.db import WriteSession
from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.identity.actors import Writer
from refract.identity.models import User
from refract.limits.errors import RateLimited
from refract.limits.service import charge, charge_up_to
from refract.links import service
from refract.links.edge import GUARDED, Space, bucket_of, creations_per_hour, wish_of
from refract.links.schemas import MOST_IN_BULK, BulkCreate, BulkResult, BulkRow, LinkCreate, RowError
from refract.links.service import Made, Wish
from refract.links.vetting import vet
from refract.names.service import Namespace
from refract.web.problems import ValidationFailed, field_errors
from refract.web.routes import large_body
from refract.web.toolkit import IdempotencyKey, Rt, api_router

router = api_router("/links", "links")
Outcome = Made | RefractError
TRIALS_PER_CREATE = 10
"""Rows that may be tried in an hour for each link that may be made in one."""


class _DryRun(Exception):
    """Ends a transaction that must not be kept."""

    def __init__(self, result: BulkResult) -> None:
        super().__init__()
        self.result = result


@router.post("/bulk", responses=GUARDED)
@large_body
async def create_links(
    asked: BulkCreate,
    actor: Writer,
    rt: Rt,
    space: Space,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> BulkResult:
    """Create up to 1,000 links. One row that fails takes nothing from the others; a dry run says what would happen."""
    if asked.dry_run:
        await _pay_for_trial(rt, actor.user, len(asked.links))
    rows = await judge(rt, asked.links)
    wishes = {index: row for index, row in enumerate(rows) if isinstance(row, Wish)}
    outcomes: dict[int, Outcome] = {index: row for index, row in enumerate(rows) if isinstance(row, RefractError)}
    try:
        async with rt.db.write() as session:
            outcomes |= await _create(session, rt, space, actor.user, wishes)
            result = _report(rt, outcomes, len(rows))  # in here: after a roll-back there is nothing left to report
            if asked.dry_run:
                raise _DryRun(result)
    except _DryRun as dry:
        return dry.result
    return result


async def _pay_for_trial(rt: Runtime, user: User, rows: int) -> None:
    """Count the rows of a dry run, which gives back what it took for links but costs as much as making them."""
    limit = creations_per_hour(rt, user)
    async with rt.db.write() as session:
        per_hour = None if limit is None else max(limit * TRIALS_PER_CREATE, MOST_IN_BULK)
        await charge(session, f"trials:{user.id}", rows, per_hour=per_hour, now=rt.clock.now())


async def judge(rt: Runtime, rows: list[dict[str, Any]]) -> list[Wish | RefractError]:
    """Each row as a wish, or why it cannot be one. Destinations are looked at together, with no transaction open."""
    found: list[LinkCreate | RefractError] = [_read(row) for row in rows]
    good = [new for new in found if isinstance(new, LinkCreate)]
    verdicts = iter(await vet(rt, [new.destination for new in good]))
    judged: list[Wish | RefractError] = []
    for new in found:
        verdict = next(verdicts) if isinstance(new, LinkCreate) else new
        judged.append(
            wish_of(rt, new, verdict)
            if isinstance(new, LinkCreate) and not isinstance(verdict, RefractError | LinkCreate)
            else _error(verdict)
        )
    return judged


def _error(verdict: object) -> RefractError:
    assert isinstance(verdict, RefractError)  # noqa: S101 - everything else became a wish
    return verdict


def _read(row: dict[str, Any]) -> LinkCreate | RefractError:
    try:
        return LinkCreate.model_validate(row)
    except ValidationError as wrong:
        return ValidationFailed(errors=field_errors(wrong.errors()))


async def _create(session: WriteSession, rt: Runtime, space: Namespace, user: User, wishes: dict[int, Wish]) -> dict[int, Outcome]:
    per_hour = creations_per_hour(rt, user)
    granted, _ = await charge_up_to(session, bucket_of(user), len(wishes), per_hour=per_hour, now=rt.clock.now())
    within = dict(list(wishes.items())[:granted])
    made = await service.create_links(session, space, user, list(within.values())) if within else []
    outcomes: dict[int, Outcome] = dict(zip(within, made, strict=True))
    past = RateLimited(limit=per_hour or 0, per="an hour", retry_after=3600 // (per_hour or 1))
    return outcomes | {index: past for index in wishes if index not in within}


def _report(rt: Runtime, outcomes: dict[int, Outcome], count: int) -> BulkResult:
    now = rt.clock.now()
    rows = [_row(rt, index, outcomes[index], now) for index in range(count)]
    return BulkResult(results=rows, created=sum(row.status == 201 for row in rows), failed=sum(row.status >= 400 for row in rows))


def _row(rt: Runtime, index: int, outcome: Outcome, now: Any) -> BulkRow:
    if isinstance(outcome, RefractError):
        errors = [{"field": one.field, "message": one.message} for one in outcome.errors]
        return BulkRow(index=index, status=outcome.status, error=RowError(code=outcome.code, detail=outcome.message, errors=errors))
    return BulkRow(index=index, status=200 if outcome.found else 201, link=outcome.card.shown(rt.settings.public_url, now))
