"""The sign-in in the browser: authorization code flow with PKCE, and logout.

The state of a sign-in is one signed cookie of that browser: provider, deadline, and a random seed
from which state, nonce and PKCE verifier are derived. A callback without the cookie, with that of
another browser, or for another provider is refused.
"""

import base64
import json
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote_plus, urlencode

from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.core.secrets import ExpiredSeal, InvalidSeal, Secret, encode_base64url
from refract.identity import audit, sessions
from refract.identity.errors import InvalidLogoutToken, IssuerUnavailable, SignInFailed
from refract.identity.oidc import tokens
from refract.identity.oidc.providers import (
    DiscoveryDocument,
    DocumentRefused,
    OidcProvider,
    ProviderStatusError,
)

ATTEMPT_SECONDS = 10 * 60
_PURPOSE = "oidc"
MAX_SID_LENGTH = 255
_MAX_CODE_LENGTH = 4096
NOT_BEGUN_HERE = Phrase("it wasn't started in this browser, or it was started twice.")
_REFUSALS = {
    "access_denied": Phrase("the provider canceled or denied it."),
    "login_required": Phrase("the provider wants you to sign in there first."),
    "temporarily_unavailable": Phrase("the provider is unavailable right now."),
}


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """A sign-in in progress."""

    provider: str
    seed: str

    def seal(self, rt: Runtime) -> str:
        """Return the value of the browser's cookie."""
        message = json.dumps([self.provider, self.seed]).encode()
        until = rt.clock.now() + timedelta(seconds=ATTEMPT_SECONDS)
        return rt.secret.seal(_PURPOSE, message, until=until)

    @classmethod
    def unseal(cls, rt: Runtime, sealed: str) -> "SignInAttempt":
        """Return the attempt, or raise `SignInFailed` if it is not ours or too old."""
        try:
            return cls(*json.loads(rt.secret.unseal(_PURPOSE, sealed, now=rt.clock.now())))
        except ExpiredSeal as exc:
            raise SignInFailed(why=Phrase("it took too long.")) from exc
        except InvalidSeal as exc:
            raise SignInFailed(why=NOT_BEGUN_HERE) from exc

    def derive(self, secret: Secret, purpose: str) -> str:
        return encode_base64url(
            secret.sign(f"oidc-{purpose}", f"{self.provider}\n{self.seed}".encode(), size=32)
        )


@dataclass(frozen=True, slots=True)
class CallbackParams:
    """Query parameters of the provider's callback."""

    code: str | None
    state: str | None
    issuer: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class CompletedSignIn:
    """A sign-in that the provider has completed."""

    claims: tokens.Claims
    attempt: SignInAttempt

    @property
    def sid(self) -> str | None:
        """Return the provider's id of its session, if it sent one that can be stored."""
        sid = self.claims.get("sid")
        return sid if isinstance(sid, str) and 0 < len(sid) <= MAX_SID_LENGTH else None


def build_callback_url(rt: Runtime, provider: OidcProvider) -> str:
    """Return the callback URL. Each provider has its own, which prevents mix-up attacks."""
    return f"{rt.settings.public_url}/auth/oidc/{provider.name}/callback"


async def begin_sign_in(rt: Runtime, provider: OidcProvider) -> tuple[str, str]:
    """Return the URL to redirect the browser to, and the value of its cookie."""
    metadata = await provider.get_metadata()
    attempt = SignInAttempt(provider.name, secrets.token_urlsafe(32))
    verifier = attempt.derive(rt.secret, "verifier")
    params = {
        "response_type": "code",
        "client_id": provider.issuer.client_id,
        "redirect_uri": build_callback_url(rt, provider),
        "scope": provider.issuer.scopes,
        "state": attempt.derive(rt.secret, "state"),
        "nonce": attempt.derive(rt.secret, "nonce"),
        "code_challenge": tokens.compute_pkce_challenge(verifier),
        "code_challenge_method": "S256",
    }
    return _add_query(metadata.discovery.authorization_endpoint, params), attempt.seal(rt)


async def finish_sign_in(
    rt: Runtime, provider: OidcProvider, callback: CallbackParams, cookie: str | None
) -> "CompletedSignIn":
    """Return the verified claims of the user. Raises `SignInFailed` with a reason to display.

    The caller spends the attempt in the transaction that creates the session: it is single-use.
    """
    attempt = SignInAttempt.unseal(rt, cookie or "")
    if attempt.provider != provider.name:
        raise SignInFailed(why=NOT_BEGUN_HERE)
    if not secrets.compare_digest(
        attempt.derive(rt.secret, "state").encode(), (callback.state or "").encode()
    ):
        raise SignInFailed(why=NOT_BEGUN_HERE)
    discovery = (await provider.get_metadata()).discovery
    _check_sender(discovery, callback)
    if callback.error is not None:
        raise SignInFailed(why=_REFUSALS.get(callback.error, Phrase("the provider rejected it.")))
    if not callback.code or len(callback.code) > _MAX_CODE_LENGTH:
        raise SignInFailed(why=Phrase("the provider's response is incomplete."))
    response = await _redeem_code(
        rt, provider, discovery, callback.code, attempt.derive(rt.secret, "verifier")
    )
    return CompletedSignIn(
        await _verify_identity(
            rt, provider, discovery, response, attempt.derive(rt.secret, "nonce")
        ),
        attempt,
    )


def build_sign_out_url(
    rt: Runtime, provider: OidcProvider, discovery: DiscoveryDocument
) -> str | None:
    """Return the URL where the provider ends its own session, or None if it has no such endpoint.

    No ID token is stored to send as a hint: it would be personal data at rest, and only saves the
    provider's confirmation page.
    """
    if discovery.end_session_endpoint is None:
        return None
    params = {
        "client_id": provider.issuer.client_id,
        "post_logout_redirect_uri": f"{rt.settings.public_url}/auth/signed-out",
    }
    return _add_query(discovery.end_session_endpoint, params)


def _check_sender(discovery: DiscoveryDocument, callback: CallbackParams) -> None:
    """Check `iss` of the callback: required where the provider announces it (RFC 9207)."""
    required = discovery.authorization_response_iss_parameter_supported
    if callback.issuer != discovery.issuer and (required or callback.issuer is not None):
        raise SignInFailed(why=Phrase("the response came from another provider."))


async def _redeem_code(
    rt: Runtime, provider: OidcProvider, discovery: DiscoveryDocument, code: str, verifier: str
) -> dict[str, Any]:
    """Exchange the authorization code for tokens."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": build_callback_url(rt, provider),
        "code_verifier": verifier,
    }
    secret, client = provider.issuer.secret, provider.issuer.client_id
    options: dict[str, Any] = {}
    if secret is None:
        form["client_id"] = client
    elif "client_secret_basic" in discovery.token_endpoint_auth_methods_supported:
        pair = f"{quote_plus(client)}:{quote_plus(secret)}"
        options["headers"] = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    else:
        form |= {"client_id": client, "client_secret": secret}
    try:
        response = await provider.request_json(
            "POST", discovery.token_endpoint, data=form, **options
        )
    except DocumentRefused as exc:
        if isinstance(exc, ProviderStatusError) and 400 <= exc.status < 500:
            raise SignInFailed(
                why=Phrase("the provider rejected the code or this client.")
            ) from exc
        raise IssuerUnavailable(name=provider.issuer.display_name) from exc
    if not isinstance(response, dict) or not isinstance(response.get("id_token"), str):
        raise SignInFailed(why=Phrase("the provider's response is incomplete."))
    return response


async def _verify_identity(
    rt: Runtime,
    provider: OidcProvider,
    discovery: DiscoveryDocument,
    response: dict[str, Any],
    nonce: str,
) -> tokens.Claims:
    access = response.get("access_token")
    access = access if isinstance(access, str) else None
    try:
        token = tokens.parse_token(response["id_token"])
        algorithm = token.check_algorithm(provider.issuer.algorithms)
        tokens.check_signature(token, await provider.find_signing_key(token, algorithm), algorithm)
        tokens.check_id_token(
            token, provider.issuer, rt.clock.now().timestamp(), nonce=nonce, access_token=access
        )
    except tokens.TokenRefused as exc:
        raise SignInFailed(why=Phrase("the provider's token couldn't be verified.")) from exc
    groups = provider.issuer.groups_claim
    is_complete = "email" in token.claims and (groups is None or groups in token.claims)
    if is_complete or access is None or discovery.userinfo_endpoint is None:
        return token.claims
    return token.claims | await _fetch_userinfo(
        provider, discovery.userinfo_endpoint, access, token.claims["sub"]
    )


async def _fetch_userinfo(
    provider: OidcProvider, url: str, access_token: str, subject: str
) -> tokens.Claims:
    """Return name, email and groups where the ID token lacks one of them.

    A failure does not stop the sign-in.
    """
    try:
        userinfo = await provider.request_json(
            "GET", url, headers={"Authorization": f"Bearer {access_token}"}
        )
    except DocumentRefused:
        return {}
    if not isinstance(userinfo, dict) or userinfo.get("sub") != subject:
        return {}
    profile = (
        "email",
        "email_verified",
        "name",
        "given_name",
        "family_name",
        "preferred_username",
        "picture",
        provider.issuer.groups_claim,
    )
    return {name: userinfo[name] for name in profile if name is not None and name in userinfo}


def _add_query(url: str, params: dict[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(params)}"


# Back-channel logout: a provider reports, server to server, that one of its sessions has ended.

_LOGOUT_TOKEN_RETENTION = timedelta(
    seconds=tokens.MAX_LOGOUT_TOKEN_AGE_SECONDS + tokens.CLOCK_SKEW_SECONDS
)


async def handle_backchannel_logout(rt: Runtime, provider: OidcProvider, text: str) -> int:
    """End the sessions that a logout token names; return how many. Raises `InvalidLogoutToken`.

    It takes effect on every node: sessions are read with each request, for streams every second.
    """
    try:
        token = tokens.parse_token(text)
        algorithm = token.check_algorithm(provider.issuer.algorithms)
        logout = tokens.check_logout_token(token, provider.issuer, rt.clock.now().timestamp())
        tokens.check_signature(token, await provider.find_signing_key(token, algorithm), algorithm)
    except tokens.TokenRefused as exc:
        raise InvalidLogoutToken(why=str(exc)) from exc
    url = provider.issuer.url
    async with rt.db.write() as session:
        if not await sessions.spend_token(
            session, f"{url}\n{logout.token_id}", until=rt.clock.now() + _LOGOUT_TOKEN_RETENTION
        ):
            raise InvalidLogoutToken(why="it was sent before")
        ended = await sessions.end_provider_sessions(
            session, url, subject=logout.subject, sid=logout.sid
        )
        if ended:
            await audit.record_event(
                session, rt, "sessions.ended", detail=f"{ended} by {provider.name}, back-channel"
            )
    return ended
