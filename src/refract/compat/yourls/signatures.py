"""Who calls YOURLS' API: a key as the password, a signature, or one that expires."""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from refract.compat.request import DialectRequest
from refract.identity.authentication import Caller, admit_key, authenticate_key
from refract.identity.errors import InvalidCredentials, SignInRequired
from refract.identity.key_usage import KeyUsageTracker
from refract.identity.keys import derive_signature_token, list_usable_keys
from refract.web.networks import client_network, client_network_text
from refract.web.routing import create_anonymous_body_limit

NONCE_LIFETIME = timedelta(seconds=43_200)
"""Half a day: plug-ins send their local time."""
_HASHES: Mapping[str, Callable[[bytes], Any]] = {
    "md5": lambda text: hashlib.md5(text, usedforsecurity=False),
    "sha256": hashlib.sha256,
}


async def authenticate_parameters(request: DialectRequest, parameters: Mapping[str, Any]) -> Caller:
    """Return the caller. Raises `SignInRequired` without, `InvalidCredentials` for wrong proof."""
    password, signature = parameters.get("password"), parameters.get("signature")
    if password:
        return await authenticate_key(request, request.rt, str(password))
    if not signature:
        raise SignInRequired
    return await _authenticate_signature(request, parameters, str(signature).lower())


async def _authenticate_signature(
    request: DialectRequest, parameters: Mapping[str, Any], signature: str
) -> Caller:
    """Return the caller whose key made a signature. Wrong ones are limited per network."""
    rt, network = request.rt, client_network(request, request.rt)
    guesses = rt.singleton(create_anonymous_body_limit)
    guesses.check(network)
    compute = _choose_signature(request, parameters)
    if compute is not None:
        async with rt.db.read() as session:
            keys = await list_usable_keys(session, rt.clock.now())
        for key, user in keys:
            token = derive_signature_token(rt.secret, key.id)
            if any(hmac.compare_digest(made, signature) for made in compute(token)):
                return admit_key(request, rt, key, user)
    await guesses.charge(network)
    usage: KeyUsageTracker = request.app.state.key_usage
    usage.count_refusal("", client_network_text(request, rt) or "")
    raise InvalidCredentials


def _choose_signature(
    request: DialectRequest, parameters: Mapping[str, Any]
) -> Callable[[str], list[str]] | None:
    """Return what makes the valid signatures of a token; None if no signature can be valid."""
    if "timestamp" not in parameters:
        return lambda token: [token]
    stamp = str(parameters["timestamp"])
    digest = _HASHES.get(str(parameters.get("hash", "md5")).lower())
    if digest is None or not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        return None
    if abs(request.rt.clock.now().timestamp() - int(stamp)) >= NONCE_LIFETIME.total_seconds():
        return None
    return lambda token: [
        digest(text.encode()).hexdigest() for text in (stamp + token, token + stamp)
    ]
