"""What a link needs before its transaction begins: checked destinations and a hashed password."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from refract.core.passwords import hash_password
from refract.core.runtime import Runtime
from refract.links.rules.checks import check_rules, check_rules_of_version
from refract.links.safety.fallbacks import check_fallback
from refract.links.safety.service import CheckedDestination, check_destination
from refract.links.schemas import LinkCreate, LinkPatch

SUBSTITUTES = ("before_destination", "expired_destination", "limit_destination")
"""Fields with the URL that visitors get before a link starts, after it expired or at its limit."""


@dataclass(frozen=True, slots=True)
class CheckedExtras:
    """The fields of a request beside its destination that take time to check."""

    password_hash: str | None = None
    substitutes: Mapping[str, str | None] = field(default_factory=dict)
    """The given `SUBSTITUTES`, as they will be sent; None removes one."""
    rules: str | None = None
    """The column of the rules of a new link."""
    rules_unchecked: bool = False
    """Whether the safety check failed for one of them and must be repeated."""

    @property
    def columns(self) -> dict[str, Any]:
        """Return the columns of a new link."""
        return {
            **self.substitutes,
            "rules": self.rules,
            "password_hash": self.password_hash,
        }


@dataclass(frozen=True, slots=True)
class CheckedChanges(CheckedExtras):
    """The same of a change, with its destination if it has a new one."""

    destination: CheckedDestination | None = None


async def check_changes(rt: Runtime, patch: LinkPatch) -> CheckedChanges:
    """Check the changes of a link, or raise why one isn't allowed.

    This may call other services, so no transaction may be open.
    """
    destination = None
    if patch.destination is not None:
        destination = await check_destination(rt, patch.destination)
    extras = await check_extras(rt, patch)
    return CheckedChanges(extras.password_hash, extras.substitutes, destination=destination)


async def check_extras(rt: Runtime, given: LinkCreate | LinkPatch) -> CheckedExtras:
    """Check the other URLs and the rules, and hash the password."""
    password_hash = await hash_password(rt, given.password) if given.password else None
    substitutes = {
        name: await check_fallback(rt, url, field=name) if url else None
        for name in SUBSTITUTES
        if name in given.model_fields_set
        for url in (getattr(given, name),)
    }
    if isinstance(given, LinkPatch) or not given.rules:
        return CheckedExtras(password_hash, substitutes)
    checked = await check_rules(rt, given.rules)
    column = checked.number_rules(None)
    return CheckedExtras(password_hash, substitutes, column, checked.unchecked)


async def check_version(rt: Runtime, snapshot: Mapping[str, Any]) -> CheckedDestination:
    """Check the destination of an earlier version again, and its other URLs."""
    for name in SUBSTITUTES:
        if snapshot.get(name):
            await check_fallback(rt, snapshot[name], field=name)
    await check_rules_of_version(rt, snapshot)
    return await check_destination(rt, snapshot["destination"])
