"""The visitor's word that a flagged link may lead them on: asked for on its preview, signed, good for a few minutes."""

import re
from datetime import datetime
from typing import Final

from refract.core.secrets import Secret
from refract.links.models import FlagReason
from refract.redirect.resolve import Found

PARAMETER: Final = "continue"
CONFIRMED_SECONDS: Final = 600
"""A confirmation is good for this long at least, and for twice as long at most."""

_PURPOSE: Final = "continue"
_SHAPE: Final = re.compile(rf"{PARAMETER}=([0-9a-f]{{24}})(?:&(.*))?", re.DOTALL)
_REASONS: Final = {
    FlagReason.UNCHECKED: "The address could not be checked yet. Continue only if you know it.",
    FlagReason.LOOKALIKE: "The address mixes letters of several alphabets, so it may imitate another site. Read it with care.",
    FlagReason.DANGEROUS: "The address is listed as dangerous. Go back unless you are sure.",
    FlagReason.BLOCKED: "The address is on the block list of this service. Go back unless you are sure.",
}


def explain_flag(reason: str) -> str:
    """Return what a visitor is told."""
    return _REASONS[FlagReason(reason)]


def split_confirmation(query: str) -> tuple[str, str]:
    """Return the confirmation that a query begins with, and the rest, which is the visitor's own. Either may be empty."""
    found = _SHAPE.fullmatch(query)
    return (found[1], found[2] or "") if found else ("", query)


def confirm(secret: Secret, found: Found, network: str, now: datetime) -> str:
    """Return a confirmation for this link as it is now, from this network. Passed on to others it opens nothing for them."""
    return _sign(secret, found, network, int(now.timestamp()) // CONFIRMED_SECONDS)


def is_confirmed(secret: Secret, found: Found, network: str, now: datetime, confirmation: str) -> bool:
    slot = int(now.timestamp()) // CONFIRMED_SECONDS
    return any(_sign(secret, found, network, known) == confirmation for known in (slot, slot - 1))


def _sign(secret: Secret, found: Found, network: str, slot: int) -> str:
    return secret.sign(_PURPOSE, f"{found.kind} {found.id} {found.version} {network} {slot}".encode(), size=12).hex()
