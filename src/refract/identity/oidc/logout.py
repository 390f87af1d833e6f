"""Back-channel logout: a provider tells us, server to server, that a session of its own is over."""

from datetime import timedelta

from refract.core.runtime import Runtime
from refract.identity import audit, sessions
from refract.identity.errors import LogoutRefused
from refract.identity.oidc import tokens
from refract.identity.oidc.documents import Provider

_KEPT = timedelta(seconds=tokens.LOGOUT_SECONDS + tokens.SKEW_SECONDS)


async def end_by_provider(rt: Runtime, provider: Provider, text: str) -> int:
    """End the sessions that a logout token names, on every node; return how many. Raises `LogoutRefused`.

    Nodes ask the database for the session with each request, and every second for live streams.
    """
    try:
        token = tokens.read(text)
        algorithm = token.algorithm(provider.issuer.algorithms)
        logout = tokens.check_logout_token(token, provider.issuer, rt.clock.now().timestamp())
        tokens.check_signature(token, await provider.key_for(token, algorithm), algorithm)
    except tokens.TokenRefused as exc:
        raise LogoutRefused(why=str(exc)) from exc
    url = provider.issuer.url
    async with rt.db.write() as session:
        if not await sessions.spend(session, f"{url}\n{logout.token_id}", until=rt.clock.now() + _KEPT):
            raise LogoutRefused(why="sent before")
        ended = await sessions.end_provider_sessions(session, url, subject=logout.subject, sid=logout.sid)
        if ended:
            await audit.note(session, rt, "sessions.ended", detail=f"{ended} by {provider.name}, back-channel")
    return ended
