"""Our row about a person whom a provider vouches for. What it claims about them is untrusted text."""

import unicodedata
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from refract.core.db import ReadSession, WriteSession
from refract.core.issuers import Issuer
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl, parse_web_url
from refract.identity import audit, tombstones
from refract.identity.errors import AccountSuspended, LastAdministrator, NotInvited
from refract.identity.leaving import keep_an_administrator
from refract.identity.models import Plan, User, UserRole, UserStatus
from refract.identity.oidc.tokens import Claims
from refract.identity.people import fold_email

MOST_NAME = 100
MOST_EMAIL = 255
MOST_URL = 2048


async def find_account(session: ReadSession, issuer: Issuer, subject: str) -> User | None:
    return await session.scalar(select(User).where(User.issuer == issuer.url, User.subject == subject))


async def sync_account(session: WriteSession, rt: Runtime, issuer: Issuer, claims: Claims) -> User:
    """The account of (issuer, subject), made when it is new, told what the provider says now.

    Nobody is ever found by an address: two providers may claim the same one, and not every provider checks.
    Raises `AccountBarred` for somebody whose account was deleted here, until an administrator allows them.
    """
    email, verified = _email(claims)
    if not _is_invited(issuer, email, verified=verified):
        raise NotInvited
    user = await find_account(session, issuer, claims["sub"])
    if user is None:
        await tombstones.check(session, rt, issuer.url, claims["sub"])
        user = await _make(session, rt, issuer, claims["sub"])
    if user.status != UserStatus.ACTIVE:
        raise AccountSuspended
    if "email" in claims:
        user.email, user.email_folded, user.email_verified = email, fold_email(email), verified
    user.display_name = _name(claims) or user.display_name
    user.avatar_url = user.avatar_url or _picture(claims)
    user.last_sync_at = rt.clock.now()
    await _follow_setting(session, rt, issuer, user)
    await session.flush()
    return user


async def _make(session: WriteSession, rt: Runtime, issuer: Issuer, subject: str) -> User:
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
        plan=Plan.FREE,
        role=UserRole.USER,
        status=UserStatus.ACTIVE,
        created_at=now,
        last_sync_at=now,
    )
    try:
        async with session.begin_nested():
            session.add(user)
    except IntegrityError:  # they came through two doors at once
        return (await session.scalars(select(User).where(User.issuer == issuer.url, User.subject == subject))).one()
    await audit.note(session, rt, "account.made", actor=user)
    return user


def is_still_invited(issuer: Issuer, user: User, claims: Claims) -> bool:
    """Return whether a known account may come in, by the address that a token names or else by the one we know."""
    email, verified = _email(claims) if "email" in claims else (user.email, user.email_verified)
    return _is_invited(issuer, email, verified=verified)


def _is_invited(issuer: Issuer, email: str, *, verified: bool) -> bool:
    domains = {domain.casefold() for domain in issuer.domains}
    return not domains or (verified and email.rpartition("@")[2].casefold() in domains)


async def _follow_setting(session: WriteSession, rt: Runtime, issuer: Issuer, user: User) -> None:
    """Give the role to those whom `ADMINS` names, and take it from those whom it named before.

    A role that was given by hand stays, and so does the last administrator's.
    """
    by_address = user.email_verified and user.email_folded in {fold_email(email) for email in issuer.admin_emails}
    named = by_address or user.subject in issuer.admin_subjects
    if named == (user.role == UserRole.ADMIN) or not (named or user.admin_by_setting):
        return
    if not named:
        try:
            await keep_an_administrator(session, user)
        except LastAdministrator:
            return
    user.role, user.admin_by_setting = (UserRole.ADMIN, True) if named else (UserRole.USER, None)
    await audit.note(session, rt, "role.changed", actor=user, target=str(user.id), detail=f"{user.role}, by setting")


def _email(claims: Claims) -> tuple[str, bool]:
    """The address and whether the provider vouches for it: by `true`, not by a text that says so."""
    email = plain(claims.get("email"), MOST_EMAIL + 1)
    local, _, domain = email.rpartition("@")
    if not local or not domain or len(email) > MOST_EMAIL or any(character.isspace() for character in email):
        return "", False
    return email, claims.get("email_verified") is True


def _name(claims: Claims) -> str:
    parts = (plain(claims.get(name), MOST_NAME) for name in ("given_name", "family_name"))
    return plain(claims.get("name"), MOST_NAME) or " ".join(part for part in parts if part)[:MOST_NAME] or _handle(claims)


def _handle(claims: Claims) -> str:
    return plain(claims.get("preferred_username"), MOST_NAME)


def _picture(claims: Claims) -> str | None:
    address = claims.get("picture")
    if not isinstance(address, str) or len(address) > MOST_URL:
        return None
    try:
        href = parse_web_url(address).href
    except BadUrl:
        return None
    return href if len(href) <= MOST_URL else None


def plain(text: Any, most: int) -> str:
    """A claim as one line: no control or formatting characters, which could turn a name round or hide a part of it."""
    if not isinstance(text, str):
        return ""
    kept = "".join(one if not unicodedata.category(one).startswith("C") else " " for one in unicodedata.normalize("NFC", text[: most * 4]))
    return " ".join(kept.split())[:most]
