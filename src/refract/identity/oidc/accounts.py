"""Accounts of users who sign in with a provider. Its claims are untrusted text."""

import asyncio
import contextvars
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from refract.core.db.session import ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.core.text import clean_line
from refract.core.urls import BadUrl, parse_web_url
from refract.identity import audit, tombstones
from refract.identity.account_deletion import require_other_administrator
from refract.identity.errors import (
    AccountNotAllowed,
    AccountSuspended,
    EmailDomainNotAllowed,
    LastAdmin,
)
from refract.identity.models import User, UserPlan, UserRole, UserStatus
from refract.identity.oidc import tokens
from refract.identity.oidc.providers import OidcProvider, OidcProviders
from refract.identity.oidc.tokens import Claims
from refract.identity.users import fold_email

MAX_NAME_LENGTH = 100
MAX_EMAIL_LENGTH = 255
MAX_URL_LENGTH = 2048


async def find_account(session: ReadSession, issuer: Issuer, subject: str) -> User | None:
    return await session.scalar(
        select(User).where(User.issuer == issuer.url, User.subject == subject)
    )


async def sync_account(session: WriteSession, rt: Runtime, issuer: Issuer, claims: Claims) -> User:
    """Return the account of (issuer, subject), created if it is new, updated by the claims.

    Accounts are never matched by email: two providers may claim the same address, and not every
    provider verifies it. Raises `NotInvited`, `AccountSuspended`, or `AccountBarred` if the account
    was deleted here and no administrator has allowed a new one.
    """
    email, verified = _get_email(claims)
    if not _is_invited(issuer, email, verified=verified):
        raise EmailDomainNotAllowed
    user = await find_account(session, issuer, claims["sub"])
    if user is None:
        await tombstones.check_not_barred(session, rt, issuer.url, claims["sub"])
        user = await _create_account(session, rt, issuer, claims["sub"])
    if user.status != UserStatus.ACTIVE:
        raise AccountSuspended
    if "email" in claims:
        user.email, user.email_folded, user.email_verified = email, fold_email(email), verified
    user.display_name = _get_name(claims) or user.display_name
    user.avatar_url = user.avatar_url or _get_picture(claims)
    user.last_sync_at = rt.clock.now()
    await _sync_admin_role(session, rt, issuer, user)
    await session.flush()
    return user


async def _create_account(session: WriteSession, rt: Runtime, issuer: Issuer, subject: str) -> User:
    now = rt.clock.now()
    user = User(
        id=rt.ids.next_id(),
        issuer=issuer.url,
        subject=subject,
        email="",
        email_folded="",
        email_verified=False,
        display_name="",
        preferences={},
        plan=UserPlan.FREE,
        role=UserRole.USER,
        status=UserStatus.ACTIVE,
        created_at=now,
        last_sync_at=now,
    )
    try:
        async with session.begin_nested():
            session.add(user)
    except IntegrityError:  # a concurrent sign-in of the same person was first
        return (
            await session.scalars(
                select(User).where(User.issuer == issuer.url, User.subject == subject)
            )
        ).one()
    await audit.record_event(session, rt, "account.made", actor=user)
    return user


def is_still_invited(issuer: Issuer, user: User, claims: Claims) -> bool:
    """Return whether an account may sign in, by the token's email or else the stored one."""
    email, verified = _get_email(claims) if "email" in claims else (user.email, user.email_verified)
    return _is_invited(issuer, email, verified=verified)


def _is_invited(issuer: Issuer, email: str, *, verified: bool) -> bool:
    domains = {domain.casefold() for domain in issuer.domains}
    return not domains or (verified and email.rpartition("@")[2].casefold() in domains)


async def _sync_admin_role(session: WriteSession, rt: Runtime, issuer: Issuer, user: User) -> None:
    """Grant the role to users in `ADMINS`, and remove it from those who got it that way.

    A role granted by hand stays, and so does that of the last administrator.
    """
    by_address = user.email_verified and user.email_folded in {
        fold_email(email) for email in issuer.admin_emails
    }
    named = by_address or user.subject in issuer.admin_subjects
    if named == (user.role == UserRole.ADMIN) or not (named or user.admin_by_setting):
        return
    if not named:
        try:
            await require_other_administrator(session, user)
        except LastAdmin:
            return
    user.role, user.admin_by_setting = (UserRole.ADMIN, True) if named else (UserRole.USER, None)
    await audit.record_event(
        session,
        rt,
        "role.changed",
        actor=user,
        target=str(user.id),
        detail=f"{user.role}, by setting",
    )


def _get_email(claims: Claims) -> tuple[str, bool]:
    """Return the email and whether it is verified: by `true`, not by the text "true"."""
    email = clean_claim(claims.get("email"), MAX_EMAIL_LENGTH + 1)
    local, _, domain = email.rpartition("@")
    if (
        not local
        or not domain
        or len(email) > MAX_EMAIL_LENGTH
        or any(character.isspace() for character in email)
    ):
        return "", False
    return email, claims.get("email_verified") is True


def _get_name(claims: Claims) -> str:
    parts = (
        clean_claim(claims.get(name), MAX_NAME_LENGTH) for name in ("given_name", "family_name")
    )
    return (
        clean_claim(claims.get("name"), MAX_NAME_LENGTH)
        or " ".join(part for part in parts if part)[:MAX_NAME_LENGTH]
        or _get_handle(claims)
    )


def _get_handle(claims: Claims) -> str:
    return clean_claim(claims.get("preferred_username"), MAX_NAME_LENGTH)


def _get_picture(claims: Claims) -> str | None:
    url = claims.get("picture")
    if not isinstance(url, str) or len(url) > MAX_URL_LENGTH:
        return None
    try:
        href = parse_web_url(url).href
    except BadUrl:
        return None
    return href if len(href) <= MAX_URL_LENGTH else None


def clean_claim(text: Any, max_length: int) -> str:
    """Return a claim as one line of at most `max_length` characters."""
    return clean_line(text, max_length) if isinstance(text, str) else ""


# Access tokens of a provider on the API, verified here with its cached keys.


async def user_from_bearer_token(rt: Runtime, text: str) -> User | None:
    """Return the active user of an access token; None if the token is not valid.

    The account is not cached: suspension and deletion take effect immediately, in every process.
    """
    try:
        token = tokens.parse_token(text)
        provider = rt.singleton(OidcProviders).find_by_issuer(token.issuer)
        if provider is None:
            return None
        subject = await _verify_token(rt, provider, token)
    except tokens.TokenRefused:
        return None
    async with rt.db.read() as session:
        user = await find_account(session, provider.issuer, subject)
    if user is None and rt.settings.role != "redirect":  # which may only read
        # In a context of its own: the transaction of the request begins after authentication.
        user = await asyncio.create_task(
            _provision_user(rt, provider, token.claims), context=contextvars.Context()
        )
    if (
        user is None
        or user.status != UserStatus.ACTIVE
        or not is_still_invited(provider.issuer, user, token.claims)
    ):
        return None
    return user


async def _verify_token(rt: Runtime, provider: OidcProvider, token: tokens.UnverifiedToken) -> str:
    algorithm = token.check_algorithm(provider.issuer.algorithms)
    subject = tokens.check_access_token(
        token, provider.issuer, rt.clock.now().timestamp(), origins=(rt.settings.public_url,)
    )
    tokens.check_signature(token, await provider.find_signing_key(token, algorithm), algorithm)
    return subject


async def _provision_user(
    rt: Runtime, provider: OidcProvider, claims: tokens.Claims
) -> User | None:
    """Create the account of a user who is new here, or return None if it is refused."""
    try:
        async with rt.db.write() as session:
            return await sync_account(session, rt, provider.issuer, claims)
    except AccountNotAllowed:
        return None
