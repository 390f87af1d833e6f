"""Validation of ID tokens and selection of keys. Pure: no database."""

import hashlib
from datetime import datetime
from typing import Any

import pytest

from refract.core.clock import ManualClock
from refract.identity.oidc import tokens
from refract.identity.oidc.tokens import TokenRefused
from tests.identity.issuer import AUDIENCE, CLIENT, b64, claims, public, rsa_key, sign
from tests.identity.test_tokens import HOSTILE, ISSUERS

WORK = ISSUERS["work"]


def _id_claims(now: datetime, **given: Any) -> dict[str, Any]:
    return claims(now, **{"aud": CLIENT, "client_id": None, "nonce": "n", **given})


def _check(now: datetime, body: dict[str, Any], **header: Any) -> str:
    token = tokens.parse_token(sign(body, **{"typ": "JWT", **header}))
    return tokens.check_id_token(token, WORK, now.timestamp(), nonce="n", access_token="at")


def test_a_good_id_token_tells_the_subject(clock: ManualClock) -> None:
    half = b64(hashlib.sha256(b"at").digest()[:16])

    assert _check(clock.now(), _id_claims(clock.now(), at_hash=half)) == "ada"
    assert _check(clock.now(), _id_claims(clock.now(), aud=[CLIENT, "other"], azp=CLIENT)) == "ada"


@pytest.mark.parametrize(
    "wrong",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": AUDIENCE},
        {"aud": [CLIENT, "other"]},
        {"azp": "other"},
        {"at_hash": "AAAA"},
        {"iss": "https://evil.test"},
        {"exp": 1},
        {"sub": None},
    ],
    ids=str,
)
def test_a_wrong_id_token_is_refused(clock: ManualClock, wrong: dict[str, Any]) -> None:
    with pytest.raises(TokenRefused):
        _check(clock.now(), _id_claims(clock.now(), **wrong))


def test_an_access_token_is_no_id_token(clock: ManualClock) -> None:
    with pytest.raises(TokenRefused):
        _check(clock.now(), _id_claims(clock.now()), typ="at+jwt")


def test_there_are_at_least_twenty_five_of_them() -> None:
    assert len(HOSTILE) >= 25


def test_without_a_key_id_the_only_key_is_meant_and_of_two_none() -> None:
    one, two = public(rsa_key(), rsa_key("rsa-2"))["keys"]

    assert tokens.select_key([one], None, "RS256") == one
    assert tokens.select_key([one, two], None, "RS256") is None


@pytest.mark.parametrize(
    "wrong", [{"use": "enc"}, {"alg": "RS384"}, {"key_ops": ["sign"]}, {"kty": "oct"}], ids=str
)
def test_a_key_for_something_else_is_not_used(wrong: dict[str, Any]) -> None:
    assert tokens.select_key([{**public(rsa_key())["keys"][0], **wrong}], "rsa-1", "RS256") is None
