"""A provider's access token on the API: checked here, with keys that we know already."""

import asyncio
import contextvars

from refract.core.runtime import Runtime
from refract.identity.errors import AccountRefused
from refract.identity.models import User, UserStatus
from refract.identity.oidc import tokens
from refract.identity.oidc.accounts import find_account, is_still_invited, sync_account
from refract.identity.oidc.documents import Provider, Providers


async def person_behind(rt: Runtime, text: str) -> User | None:
    """The active person whom a token stands for; None when it is not good for anything.

    The account is asked of the database each time: who is suspended or deleted is refused at once, everywhere.
    """
    try:
        token = tokens.read(text)
        provider = rt.part(Providers).of(token.issuer)
        if provider is None:
            return None
        subject = await _checked(rt, provider, token)
    except tokens.TokenRefused:
        return None
    async with rt.db.read() as session:
        user = await find_account(session, provider.issuer, subject)
    if user is None and rt.settings.role != "redirect":  # which may only read
        # In a context of its own: the request's own transaction begins later, when it is known whose it is.
        user = await asyncio.create_task(_met(rt, provider, token.claims), context=contextvars.Context())
    if user is None or user.status != UserStatus.ACTIVE or not is_still_invited(provider.issuer, user, token.claims):
        return None
    return user


async def _checked(rt: Runtime, provider: Provider, token: tokens.Unproven) -> str:
    algorithm = token.algorithm(provider.issuer.algorithms)
    subject = tokens.check_access_token(token, provider.issuer, rt.clock.now().timestamp(), origins=(rt.settings.public_url,))
    tokens.check_signature(token, await provider.key_for(token, algorithm), algorithm)
    return subject


async def _met(rt: Runtime, provider: Provider, claims: tokens.Claims) -> User | None:
    """Somebody whom we have not met: the provider let them in, so they have an account from now on."""
    try:
        async with rt.db.write() as session:
            return await sync_account(session, rt, provider.issuer, claims)
    except AccountRefused:
        return None
