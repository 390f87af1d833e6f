"""One table says who may do what; the web app, the API and the command line all ask it."""

from enum import StrEnum

from refract.identity.models import User, UserRole


class Relation(StrEnum):
    """How a person stands to an object."""

    ADMIN = "admin"
    PRIMARY = "primary owner"
    CO_OWNER = "co-owner"
    RECIPIENT = "recipient"
    SIGNED_IN = "signed in"
    STRANGER = "stranger"


class Right(StrEnum):
    """What can be done with an object."""

    VIEW = "view"
    STATS = "stats"
    EDIT = "edit"
    MANAGE = "manage owners and shares"
    TRANSFER = "transfer"


_OWN = frozenset({Right.VIEW, Right.STATS, Right.EDIT, Right.MANAGE})

RIGHTS: dict[Relation, frozenset[Right]] = {
    Relation.ADMIN: _OWN | {Right.TRANSFER},
    Relation.PRIMARY: _OWN | {Right.TRANSFER},
    Relation.CO_OWNER: _OWN,
    Relation.RECIPIENT: frozenset({Right.VIEW, Right.STATS}),
    Relation.SIGNED_IN: frozenset(),
    Relation.STRANGER: frozenset(),
}


def relation(user: User | None, *, primary: bool = False, co_owner: bool = False, recipient: bool = False) -> Relation:
    """The strongest way in which a person stands to an object."""
    if user is None:
        return Relation.STRANGER
    if user.role == UserRole.ADMIN:
        return Relation.ADMIN
    if primary:
        return Relation.PRIMARY
    if co_owner:
        return Relation.CO_OWNER
    return Relation.RECIPIENT if recipient else Relation.SIGNED_IN


def allowed(who: Relation, right: Right) -> bool:
    """Return whether a relation allows this."""
    return right in RIGHTS[who]
