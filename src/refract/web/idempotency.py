"""Idempotency-Key: a repeated POST changes nothing and gets the first response.

The response is committed with the change. So there is no "running" state to clean up after a crash:
a second request waits for the first one's transaction by waiting for its row.
"""

import hashlib
import json
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError
from starlette.requests import Request
from starlette.responses import Response

from refract.core.db.errors import translate_db_error
from refract.core.db.session import WriteSession
from refract.core.errors import Conflict, Invalid, StoreBusy
from refract.core.runtime import Runtime
from refract.web.models import StoredResponse

RESPONSE_RETENTION = timedelta(hours=24)
MAX_KEY_LENGTH = 255
MAX_STORED_BYTES = 2 * 1024 * 1024
"""A longer response is stored without its body: a repetition gets `ResponseTooLong`."""
_REPLAYED_HEADERS = ("location", "etag", "content-type")


class InvalidIdempotencyKey(Invalid):
    """An Idempotency-Key must have 1 to 255 visible ASCII characters."""


class IdempotencyKeyReused(Invalid):
    """This Idempotency-Key was used for a different request. Use a new one."""


class ResponseTooLong(Conflict):
    """This request was already processed, but its response was too long to store.

    Fetch the result instead.
    """


class RequestInProgress(Conflict):
    """The first request with this Idempotency-Key is still running. Try again in a moment."""

    headers = {"Retry-After": "1"}  # noqa: RUF012 - a constant of the class


class _AlreadyAnswered(Exception):
    """The row exists already."""


async def run_once(
    request: Request,
    endpoint: Callable[[Request], Coroutine[Any, Any, Response]],
    secret_fields: frozenset[str],
) -> Response:
    """Run the endpoint, or return its stored response."""
    rt: Runtime = request.app.state.rt
    key = request.headers["idempotency-key"]
    if not 0 < len(key) <= MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
        raise InvalidIdempotencyKey
    fingerprint = await _compute_fingerprint(request)

    async def claim(session: WriteSession) -> None:
        await _claim_key(session, rt, _get_actor(request), key, fingerprint)

    try:
        async with rt.db.join_transactions(claim) as around:
            response = await endpoint(request)
            if around.session is not None and not around.failed:
                if 200 <= response.status_code < 300:
                    await _store_response(
                        around.session, _get_actor(request), key, response, secret_fields
                    )
                else:
                    around.failed = True  # errors are not stored, and change nothing
    except _AlreadyAnswered:
        return await _replay_response(rt, _get_actor(request), key, fingerprint)
    return response


def _get_actor(request: Request) -> str:
    """Return the authenticated caller; anonymous callers share no keys."""
    return str(getattr(request.state, "actor", "nobody"))


async def _compute_fingerprint(request: Request) -> str:
    asked = (
        f"{request.method}\n{request.url.path}\n{request.url.query}\n".encode()
        + await request.body()
    )
    return hashlib.blake2b(asked, digest_size=32).hexdigest()


async def _claim_key(
    session: WriteSession, rt: Runtime, actor: str, key: str, fingerprint: str
) -> None:
    now = rt.clock.now()
    mine = (StoredResponse.actor == actor, StoredResponse.key == key)
    try:
        await session.execute(delete(StoredResponse).where(*mine, StoredResponse.expires_at < now))
        session.add(
            StoredResponse(
                actor=actor, key=key, fingerprint=fingerprint, expires_at=now + RESPONSE_RETENTION
            )
        )
        await session.flush()
    except IntegrityError as exc:
        raise _AlreadyAnswered from exc
    except DBAPIError as exc:
        if isinstance(translate_db_error(exc), StoreBusy):
            raise RequestInProgress from exc
        raise


async def _store_response(
    session: WriteSession, actor: str, key: str, response: Response, secret_fields: frozenset[str]
) -> None:
    body = bytes(response.body)
    if secret_fields and body:
        shown = json.loads(body)
        body = json.dumps(
            {name: None if name in secret_fields else value for name, value in shown.items()}
        ).encode()
    kept = body.decode() if len(body) <= MAX_STORED_BYTES else None
    headers = {
        name: response.headers[name] for name in _REPLAYED_HEADERS if name in response.headers
    }
    await session.execute(
        update(StoredResponse)
        .where(StoredResponse.actor == actor, StoredResponse.key == key)
        .values(status=response.status_code, headers=json.dumps(headers), body=kept)
    )


async def _replay_response(rt: Runtime, actor: str, key: str, fingerprint: str) -> Response:
    async with rt.db.read() as session:
        stored = await session.scalar(
            select(StoredResponse).where(StoredResponse.actor == actor, StoredResponse.key == key)
        )
    if stored is None or stored.status is None:
        raise RequestInProgress  # it was rolled back between our insert and this read
    if stored.fingerprint != fingerprint:
        raise IdempotencyKeyReused
    if stored.body is None:
        raise ResponseTooLong
    headers = {**json.loads(stored.headers or "{}"), "Idempotency-Replayed": "true"}
    return Response(stored.body, stored.status, headers)


async def delete_expired_responses(session: WriteSession, now: datetime) -> None:
    """Delete stored responses that have expired."""
    await session.execute(delete(StoredResponse).where(StoredResponse.expires_at < now))
