"""Logs contain no secret, whatever its name, and no traceback for a lost connection."""

import logging
import sys
from typing import Any

import pytest

from refract.core.log import _shorten_lost_connections, redact
from refract.identity.keys import generate_key

KEY = generate_key()


@pytest.mark.parametrize(
    "event",
    [
        {"event": f"call with {KEY}"},
        {"headers": {"Authorization": f"Bearer {KEY}", "x": KEY}},
        {"nested": [{"deep": (KEY,)}]},
        {"api_key": "anything", "cookie": "refract=abc", "csrf": "t"},
        {"url": "postgresql://user:hunter2-canary@host/db"},
        {"path": "/auth/sign-in/UkpZ965hqjyk6xoQ9QL1cHw_yo7pcDp_3ZrFggnhIfM"},
        {
            "token": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
            "note": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        },
    ],
)
def test_secrets_are_hidden(event: dict[str, Any]) -> None:
    shown = str(redact(None, "info", dict(event)))

    for secret in (
        KEY,
        "anything",
        "abc",
        "hunter2-canary",
        "UkpZ965hqjyk6xoQ9QL1cHw",
        "eyJhbGciOiJSUzI1NiJ9",
    ):
        assert secret not in shown.replace("refract=abc" if "cookie" not in event else "", "")


def test_what_is_not_secret_stays() -> None:
    assert (
        redact(None, "info", {"event": "started", "port": 8000, "key_prefix": "refract_4fG7h2Kq"})[
            "port"
        ]
        == 8000
    )


def test_a_lost_connection_is_one_line() -> None:
    try:
        raise ConnectionError("gone")
    except ConnectionError:
        record = logging.LogRecord(
            "refract.core.db.engine.ProgressAwarePool",
            logging.ERROR,
            "",
            1,
            "Exception during reset",
            (),
            sys.exc_info(),
        )

    assert _shorten_lost_connections(record)
    assert (record.levelname, record.getMessage(), record.exc_info) == (
        "WARNING",
        "connection_lost: gone",
        None,
    )
