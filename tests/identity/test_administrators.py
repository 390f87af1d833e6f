"""Administrators and members by setting.

The finding: `ADMINS` matched subjects and addresses in one list, so a token whose subject was an
administrator's address made its bearer an administrator, with an unverified email; `DOMAINS` was
not checked again for Bearer tokens of known
accounts; and nothing warned of a provider that is open to the world.
"""

from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from pydantic import ValidationError
from sqlalchemy import select

from refract.cli.doctor import configuration
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.core.settings.model import Settings
from refract.identity.models import AuditEntry, User, UserRole
from refract.identity.oidc.accounts import sync_account
from tests import make
from tests.client import on_sqlite
from tests.conftest import make_settings
from tests.identity.issuer import CLIENT, ISSUER, bearer, claims, publish, sign


def _issuer(**given: Any) -> Issuer:
    return Issuer(url=ISSUER, client_id=CLIENT, **given)


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    issuers = {"work": _issuer(domains=("example.com",))}
    return make_settings(tmp_path / "data", database_url=database, issuers=issuers)


@pytest.fixture
async def rt(rt: Runtime) -> Runtime:
    await publish(rt)
    return rt


async def _sign_in(rt: Runtime, issuer: Issuer, **given: Any) -> User:
    async with rt.db.write() as session:
        return await sync_account(session, rt, issuer, {"sub": "ada", **given})


BOSS = {"email": "boss@example.com", "email_verified": True}


@on_sqlite
async def test_a_subject_that_spells_an_administrators_address_is_nobody_special(
    rt: Runtime,
) -> None:
    issuer = _issuer(admins="boss@example.com")

    user = await _sign_in(
        rt, issuer, sub="boss@example.com", email="nobody@example.com", email_verified=False
    )

    assert user.role == UserRole.USER


@on_sqlite
@pytest.mark.parametrize(
    ("claims_of", "role"),
    [
        ({"sub": "7", **BOSS}, UserRole.ADMIN),
        ({"sub": "7", **BOSS, "email_verified": False}, UserRole.USER),
        ({"sub": "u-1"}, UserRole.ADMIN),
        ({"sub": "U-1"}, UserRole.USER),
        ({"sub": "a@b"}, UserRole.ADMIN),
        ({"sub": "sub:u-1"}, UserRole.USER),
    ],
)
async def test_addresses_are_addresses_and_subjects_are_marked(
    rt: Runtime, claims_of: dict[str, Any], role: UserRole
) -> None:
    issuer = _issuer(admins="boss@example.com, sub:u-1, sub:a@b")

    assert (await _sign_in(rt, issuer, **claims_of)).role == role


@pytest.mark.parametrize("entry", ["u-1", "sub:", "ada@example.com,312909"])
def test_an_entry_that_is_neither_is_refused_with_the_new_form(entry: str) -> None:
    with pytest.raises(ValidationError, match="sub:"):
        _issuer(admins=entry)


async def test_who_is_no_longer_named_loses_the_role_at_the_next_sign_in(rt: Runtime) -> None:
    await _sign_in(rt, _issuer(), sub="other", **BOSS)
    async with rt.db.write() as session:
        await make.admin(session, rt)  # somebody must be left
    assert (await _sign_in(rt, _issuer(admins="boss@example.com"), **BOSS)).role == UserRole.ADMIN
    assert (await _sign_in(rt, _issuer(admins="boss@example.com"), **BOSS)).role == UserRole.ADMIN

    assert (await _sign_in(rt, _issuer(admins="sub:somebody"), **BOSS)).role == UserRole.USER

    async with rt.db.read() as session:
        lines = await session.scalars(
            select(AuditEntry.detail)
            .where(AuditEntry.action == "role.changed")
            .order_by(AuditEntry.id)
        )
        assert list(lines) == ["admin, by setting", "user, by setting"]


async def test_a_role_given_by_hand_stays_whatever_the_setting_says(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await make.admin(session, rt)
        (await make.person(session, rt, "ada")).role = UserRole.ADMIN

    assert (await _sign_in(rt, _issuer(), **BOSS)).role == UserRole.ADMIN


async def test_the_last_administrator_keeps_the_role(rt: Runtime) -> None:
    await _sign_in(rt, _issuer(admins="boss@example.com"), **BOSS)

    assert (await _sign_in(rt, _issuer(), **BOSS)).role == UserRole.ADMIN


@pytest.mark.parametrize(
    ("address", "verified", "status"),
    [
        ("ada@example.com", True, 200),
        ("ada@EXAMPLE.com", True, 200),
        ("ada@example.com", False, 401),
        ("ada@other.test", True, 401),
    ],
)
async def test_domains_are_asked_again_for_tokens_of_known_accounts(
    rt: Runtime, client: AsyncClient, clock: ManualClock, address: str, verified: bool, status: int
) -> None:
    """The operator narrowed the domains after Ada's sign-in; access tokens often lack an email."""
    async with rt.db.write() as session:
        await make.person(session, rt, "ada", email=address, email_verified=verified)

    answer = await client.get("/api/v1/me", headers=bearer(sign(claims(clock.now(), aud=CLIENT))))

    assert answer.status_code == status


@on_sqlite
async def test_a_token_that_names_another_address_is_judged_by_it(
    rt: Runtime, client: AsyncClient, clock: ManualClock
) -> None:
    async with rt.db.write() as session:
        await make.person(session, rt, "ada")
    moved = {"email": "ada@other.test", "email_verified": True}

    answer = await client.get(
        "/api/v1/me", headers=bearer(sign(claims(clock.now(), aud=CLIENT, **moved)))
    )

    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("issuer", "warned"),
    [
        ({"url": "https://accounts.google.com"}, True),
        ({"url": "https://accounts.google.com", "domains": "example.com"}, False),
        ({"url": "https://login.microsoftonline.com/common/v2.0"}, True),
        ({"url": "https://appleid.apple.com"}, True),
        ({"url": "https://verb-noun-00.clerk.accounts.dev", "kind": "clerk"}, True),
        ({"url": "https://id.example.com"}, False),
    ],
)
def test_a_provider_open_to_the_world_is_pointed_out(
    tmp_path: Path, issuer: dict[str, Any], warned: bool
) -> None:
    settings = make_settings(tmp_path, issuers={"work": Issuer(client_id=CLIENT, **issuer)})

    found = [
        finding
        for finding in configuration.check_configuration(settings)
        if "DOMAINS" in finding.remedy
    ]

    assert bool(found) is warned
