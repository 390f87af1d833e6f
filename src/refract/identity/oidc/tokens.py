"""Validation of JSON web tokens. Pure: takes text, key and time; returns claims or raises.

Nothing in a token chooses how it is verified: the algorithm must be on the operator's list, the key
must be published by the issuer, and a header with a key of its own is refused, not ignored.
"""

import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from refract.core.secrets import decode_base64url, encode_base64url
from refract.core.settings.issuers import Issuer

MAX_TOKEN_LENGTH = 16 * 1024
CLOCK_SKEW_SECONDS = 60
MAX_AUDIENCES = 50
_PART = re.compile(rb"[A-Za-z0-9_-]+")
_SINGLE_CURVE = {"EdDSA": "Ed25519"}
"""`EdDSA` names two curves (RFC 8037), newer names one each (RFC 9864). We accept Ed25519 alone."""
_FAMILY = {
    "RS": ("RSA", ""),
    "PS": ("RSA", ""),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
}
_KEYS: dict[str, type[RSAKey | ECKey | OKPKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
_OWN_KEYS = ("jwk", "jku", "x5u", "x5c")
_ACCESS_TYPES = ("at+jwt", "application/at+jwt")
_ACCESS_TOKEN_MARKS = ("scope", "scp", "client_id", "cid")
"""Claims that access tokens of type `JWT` have and ID tokens do not: the grant, or its client."""
_LOGOUT_TYPES = ("jwt", "logout+jwt", "application/logout+jwt")
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
MAX_LOGOUT_TOKEN_AGE_SECONDS = 300
"""Maximum age of a logout token, and how long its id is remembered against replays."""
_ID_TOKEN_MARKS = ("nonce", "at_hash", "c_hash", "s_hash")
_MIN_RSA_BITS = 2048

Claims = dict[str, Any]


class TokenRefused(Exception):
    """The token is not valid. The message is for the log and tests, not for the sender."""


@dataclass(frozen=True, slots=True)
class UnverifiedToken:
    """A parsed token whose signature has not been verified; nothing in it can be trusted."""

    text: str
    header: Claims
    claims: Claims

    @property
    def issuer(self) -> str:
        issuer = self.claims.get("iss")
        if not isinstance(issuer, str):
            raise TokenRefused("no issuer")
        return issuer

    @property
    def key_id(self) -> str | None:
        key_id = self.header.get("kid")
        if key_id is not None and not isinstance(key_id, str):
            raise TokenRefused("the key id is not text")
        return key_id

    def check_algorithm(self, allowed: Collection[str]) -> str:
        named = self.header.get("alg")
        if not isinstance(named, str) or named not in allowed:
            raise TokenRefused("algorithm not allowed")
        return named


def parse_token(text: str) -> UnverifiedToken:
    """Parse strictly: canonical base64url, no duplicate members, no header that changes checks."""
    if len(text) > MAX_TOKEN_LENGTH or not text.isascii():
        raise TokenRefused("too long, or not ASCII")
    parts = text.encode().split(b".")
    if len(parts) != 3:
        raise TokenRefused("not three parts")
    header, claims = _parse_object(parts[0]), _parse_object(parts[1])
    _decode_part(parts[2])
    if own_keys := [name for name in _OWN_KEYS if name in header]:
        raise TokenRefused(f"the header brings its own key: {own_keys[0]}")
    if "crit" in header or "b64" in header or "zip" in header:
        raise TokenRefused("the header asks for what we do not do")
    return UnverifiedToken(text, header, claims)


def _parse_object(part: bytes) -> Claims:
    try:
        value = json.loads(
            _decode_part(part).decode(),
            object_pairs_hook=_reject_duplicate_members,
            parse_constant=_reject_constant,
        )
    except (ValueError, RecursionError) as exc:
        raise TokenRefused("a part is not JSON") from exc
    if not isinstance(value, dict):
        raise TokenRefused("a part is not an object")
    return value


def _decode_part(part: bytes) -> bytes:
    if not _PART.fullmatch(part):
        raise TokenRefused("a part is not base64url")
    raw = decode_base64url(part.decode("ascii"))
    if raw is None:
        raise TokenRefused("a part is not canonical base64url")
    return raw


def _reject_duplicate_members(pairs: list[tuple[str, Any]]) -> Claims:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise TokenRefused("a member stands twice")
    return found


def _reject_constant(name: str) -> None:
    raise TokenRefused(f"{name} is not a value")


# -- keys


def select_key(
    keys: Sequence[Mapping[str, Any]], key_id: str | None, algorithm: str
) -> Mapping[str, Any] | None:
    """Return the key with this id, or without an id the only key for the algorithm, or None."""
    fitting = [
        key
        for key in keys
        if _can_sign(key, algorithm) and (key_id is None or key.get("kid") == key_id)
    ]
    return fitting[0] if len(fitting) == 1 or (fitting and key_id is not None) else None


def _can_sign(key: Mapping[str, Any], algorithm: str) -> bool:
    kind, curve = _FAMILY.get(algorithm) or _FAMILY.get(algorithm[:2]) or ("OKP", "Ed25519")
    operations = key.get("key_ops")
    return (
        key.get("kty") == kind
        and (not curve or key.get("crv") == curve)
        and key.get("use") in (None, "sig")
        and (
            key.get("alg") is None
            or _normalize_algorithm(key["alg"]) == _normalize_algorithm(algorithm)
        )
        and (operations is None or (isinstance(operations, list) and "verify" in operations))
    )


def _normalize_algorithm(algorithm: object) -> object:
    return _SINGLE_CURVE.get(algorithm, algorithm) if isinstance(algorithm, str) else None


def check_signature(token: UnverifiedToken, key: Mapping[str, Any], algorithm: str) -> None:
    """Raise `TokenRefused` unless the signature is by this key, with this algorithm."""
    name = _SINGLE_CURVE.get(algorithm, algorithm)
    signed, _, signature = token.text.encode().rpartition(b".")
    public = {
        name: value for name, value in key.items() if name in ("kty", "n", "e", "crv", "x", "y")
    }
    try:
        loaded = _KEYS[str(key["kty"])].import_key(public)
        if isinstance(loaded, RSAKey) and loaded.public_key.key_size < _MIN_RSA_BITS:
            raise TokenRefused("the key is too short")
        verifier = jws.JWSRegistry(algorithms=[name]).get_alg(name)
        verifier.check_key(loaded)
        is_valid = verifier.verify(signed, _decode_part(signature), loaded)
    except (JoseError, ValueError, TypeError, KeyError) as exc:
        raise TokenRefused("the signature is not the issuer's") from exc
    if not is_valid:
        raise TokenRefused("the signature is not the issuer's")


# -- claims


def check_access_token(
    token: UnverifiedToken, issuer: Issuer, now: float, *, origins: Collection[str] = ()
) -> str:
    """Return the subject of a valid access token for our API. Raises `TokenRefused`.

    Clerk's tokens have no audience; there the authorized party (`azp`, our own origin, or
    `client_id`) must be ours.
    """
    claims = token.claims
    _check_access_type(token, issuer)
    if any(name in claims for name in _ID_TOKEN_MARKS):
        raise TokenRefused("an ID token is no access token")
    if "events" in claims:
        raise TokenRefused("a security event is no access token")
    subject = _check_common_claims(claims, issuer.url, now)
    parties = {issuer.client_id, *issuer.parties, *(origins if issuer.kind == "clerk" else ())}
    named = [claims[name] for name in ("azp", "client_id") if name in claims]
    if any(not isinstance(party, str) or party not in parties for party in named):
        raise TokenRefused("made for another party")
    if "aud" in claims:
        if not {issuer.client_id, *issuer.audiences} & set(_get_audiences(claims)):
            raise TokenRefused("meant for another audience")
    elif issuer.kind != "clerk" or not named:
        raise TokenRefused("no audience")
    return subject


def _check_access_type(token: UnverifiedToken, issuer: Issuer) -> None:
    """Accept the type of RFC 9068; a plain `JWT` needs a claim that only access tokens have.

    Keycloak distinguishes its tokens by a claim `typ`. Clerk's session tokens have no such claim,
    but no audience either, which an ID token must have.
    """
    kind = token.header.get("typ", "JWT")
    if isinstance(kind, str) and kind.lower() in _ACCESS_TYPES:
        return
    if not isinstance(kind, str) or kind.lower() != "jwt":
        raise TokenRefused("not an access token by its type")
    claimed_type = token.claims.get("typ")
    is_marked = claimed_type == "Bearer" or any(
        name in token.claims for name in _ACCESS_TOKEN_MARKS
    )
    without_audience = issuer.kind == "clerk" and "aud" not in token.claims
    if claimed_type not in (None, "Bearer") or not (is_marked or without_audience):
        raise TokenRefused("nothing shows that this is an access token")


@dataclass(frozen=True, slots=True)
class LogoutRequest:
    """The session, or all sessions of a subject, that a provider asks to end."""

    subject: str | None
    sid: str | None
    token_id: str


def check_logout_token(token: UnverifiedToken, issuer: Issuer, now: float) -> LogoutRequest:
    """Check a logout token by OpenID Connect Back-Channel Logout 1.0, section 2.6.

    The caller checks its signature and replays.
    """
    claims = token.claims
    kind = token.header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in _LOGOUT_TYPES:
        raise TokenRefused("not a logout token by its type")
    _check_times(claims, issuer.url, now)
    if _get_time(claims, "iat") < now - MAX_LOGOUT_TOKEN_AGE_SECONDS:
        raise TokenRefused("too old")
    if issuer.client_id not in _get_audiences(claims):
        raise TokenRefused("meant for another audience")
    events = claims.get("events")
    if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
        raise TokenRefused("not about a logout")
    if "nonce" in claims:
        raise TokenRefused("an ID token is no logout token")
    sid, token_id = claims.get("sid"), claims.get("jti")
    if sid is not None and (not isinstance(sid, str) or not sid):
        raise TokenRefused("the session is not text")
    if not isinstance(token_id, str) or not token_id:
        raise TokenRefused("no id of its own")
    if sid is None and "sub" not in claims:
        raise TokenRefused("names nobody")
    return LogoutRequest(_get_subject(claims) if "sub" in claims else None, sid, token_id)


def check_id_token(
    token: UnverifiedToken, issuer: Issuer, now: float, *, nonce: str, access_token: str | None
) -> str:
    """Return the subject of a valid ID token. Raises `TokenRefused`."""
    claims = token.claims
    kind = token.header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() != "jwt":
        raise TokenRefused("not an ID token by its type")
    subject = _check_common_claims(claims, issuer.url, now)
    audiences = _get_audiences(claims)
    if issuer.client_id not in audiences:
        raise TokenRefused("meant for another audience")
    if claims.get("azp", issuer.client_id) != issuer.client_id or (
        len(audiences) > 1 and "azp" not in claims
    ):
        raise TokenRefused("made for another party")
    if claims.get("nonce") != nonce:
        raise TokenRefused("not an answer to our question")
    if "at_hash" in claims and claims["at_hash"] != compute_half_hash(
        access_token or "", str(token.header.get("alg"))
    ):
        raise TokenRefused("belongs to another access token")
    return subject


def _check_common_claims(claims: Claims, issuer: str, now: float) -> str:
    _check_times(claims, issuer, now)
    return _get_subject(claims)


def _check_times(claims: Claims, issuer: str, now: float) -> None:
    if claims.get("iss") != issuer:
        raise TokenRefused("another issuer")
    if _get_time(claims, "exp") <= now - CLOCK_SKEW_SECONDS:
        raise TokenRefused("expired")
    if _get_time(claims, "iat") > now + CLOCK_SKEW_SECONDS:
        raise TokenRefused("from the future")
    if "nbf" in claims and _get_time(claims, "nbf") > now + CLOCK_SKEW_SECONDS:
        raise TokenRefused("not valid yet")


def _get_subject(claims: Claims) -> str:
    subject = claims.get("sub")
    if (
        not isinstance(subject, str)
        or not 0 < len(subject) <= 255
        or not subject.isascii()
        or not subject.isprintable()
    ):
        raise TokenRefused("no usable subject")
    return subject


def _get_time(claims: Claims, name: str) -> float:
    value = claims.get(name)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or not 0 <= value < 1e12
    ):
        raise TokenRefused(f"{name} is not a time")
    return float(value)


def _get_audiences(claims: Claims) -> list[str]:
    claim = claims.get("aud")
    audiences = [claim] if isinstance(claim, str) else claim
    if (
        not isinstance(audiences, list)
        or not 0 < len(audiences) <= MAX_AUDIENCES
        or not all(isinstance(audience, str) for audience in audiences)
    ):
        raise TokenRefused("the audience is neither text nor a list of it")
    return audiences


def compute_half_hash(text: str, algorithm: str) -> str:
    """Return the left half of the hash, as in `at_hash`."""
    digest = {"256": hashlib.sha256, "384": hashlib.sha384}.get(algorithm[-3:], hashlib.sha512)(
        text.encode()
    ).digest()
    return encode_base64url(digest[: len(digest) // 2])


def compute_pkce_challenge(text: str) -> str:
    """Return the S256 challenge of a PKCE verifier."""
    return encode_base64url(hashlib.sha256(text.encode()).digest())
