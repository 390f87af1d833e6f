"""Words of links that are stored in tables. Loads no database code."""

from enum import StrEnum


class LinkState(StrEnum):
    ACTIVE = "active"
    DISABLED = "disabled"
    EXPIRED = "expired"
    DELETED = "deleted"
    ON_HOLD = "on_hold"
    """The owner is suspended. Never stored, because it follows from the owner."""


class FlagReason(StrEnum):
    """Why a link shows a preview or is stopped."""

    UNCHECKED = "unchecked"
    """The safety check has not succeeded yet."""
    LOOKALIKE = "lookalike"
    """The host imitates another with letters of several alphabets."""
    DANGEROUS = "dangerous"
    """The safety check reports a threat."""
    BLOCKED = "blocked"
    """The host is on the operator's blocklist."""


class InvitedRole(StrEnum):
    """The role that an invitation offers."""

    OWNER = "owner"
    PRIMARY = "primary"


class Visibility(StrEnum):
    """Who finds a link in lists, and who may open it."""

    PUBLIC = "public"
    """Listed for everyone signed in. Anyone with the link may open it."""
    UNLISTED = "unlisted"
    """Not listed for others. Anyone with the link may open it, so it is not private."""
    SIGNED_IN = "signed-in"
    """Not listed for others. Everyone signed in may open it."""
    TEAM = "team"
    """Only members of the teams that own it may open it, and those who may open `secure` links."""
    PASSWORD = "password"  # noqa: S105 - a kind of visibility
    """Not listed for others. Everyone who knows its password may open it."""
    SECURE = "secure"
    """Only owners, people it is shared with and administrators may open it."""

    @property
    def columns(self) -> tuple[str, str | None]:
        """Return the columns `visibility` and `audience`.

        Restricted values are stored as `secure`, so that code that does not know an
        audience admits too few people, never too many.
        """
        return (Visibility.SECURE.value, self.value) if self in _AUDIENCES else (self.value, None)

    @classmethod
    def from_columns(cls, visibility: str, audience: str | None) -> "Visibility":
        """Return the value of the two columns. An unknown audience counts as `secure`."""
        for value in _AUDIENCES:
            if (visibility, audience) == value.columns:
                return value
        return cls(visibility)


_AUDIENCES = (Visibility.SIGNED_IN, Visibility.TEAM, Visibility.PASSWORD)
"""Restricted values that admit others than owners, people they are shared with and administrators,
or say which owners.
"""
