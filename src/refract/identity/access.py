"""Access rights by relation: one table for the web app, the API and the command line."""

from enum import StrEnum


class AccessRelation(StrEnum):
    """The relation of a user to an object."""

    ADMIN = "admin"
    PRIMARY = "primary owner"
    CO_OWNER = "co-owner"
    RECIPIENT = "recipient"
    SIGNED_IN = "signed in"
    STRANGER = "stranger"


class AccessRight(StrEnum):
    """An operation on an object."""

    VIEW = "view"
    STATS = "stats"
    EDIT = "edit"
    MANAGE = "manage owners and shares"
    TRANSFER = "transfer"


_OWNER_RIGHTS = frozenset(
    {AccessRight.VIEW, AccessRight.STATS, AccessRight.EDIT, AccessRight.MANAGE}
)

RIGHTS: dict[AccessRelation, frozenset[AccessRight]] = {
    AccessRelation.ADMIN: _OWNER_RIGHTS | {AccessRight.TRANSFER},
    AccessRelation.PRIMARY: _OWNER_RIGHTS | {AccessRight.TRANSFER},
    AccessRelation.CO_OWNER: _OWNER_RIGHTS,
    AccessRelation.RECIPIENT: frozenset({AccessRight.VIEW, AccessRight.STATS}),
    AccessRelation.SIGNED_IN: frozenset(),
    AccessRelation.STRANGER: frozenset(),
}


def is_allowed(relation: AccessRelation, right: AccessRight) -> bool:
    """Return whether a relation includes a right."""
    return right in RIGHTS[relation]
