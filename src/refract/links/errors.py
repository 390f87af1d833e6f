"""What can go wrong with a link."""

from refract.core.errors import Conflict, Forbidden, Invalid, NotFound


class LinkNotFound(NotFound):
    """Link not found."""


class NameNotFound(NotFound):
    """The link doesn't have the name "{name}"."""


class OwnerNotFound(NotFound):
    """This user doesn't own the link."""


class ShareNotFound(NotFound):
    """The link isn't shared with this user."""


class InvitationNotFound(NotFound):
    """Invitation not found. It may have expired or been withdrawn."""


class TooManyInvitations(Conflict):
    """A link can have at most {limit} open invitations. Withdraw one first."""


class VersionNotFound(NotFound):
    """The link doesn't have a version {version}."""


class ExpiryInPast(Invalid):
    """The expiry must be in the future."""


class StartAfterExpiry(Invalid):
    """The link must start before it expires."""


class PasswordRequired(Invalid):
    """Links with the visibility `password` need one. Choose a password."""


class PasswordUnused(Invalid):
    """A password only works with the visibility `password`."""


class UnlistedRequired(Invalid):
    """Links with a click limit can't be public: everyone would see their destination."""


class TeamRequired(Invalid):
    """Only links that a team owns can be visible to a team. Give the link to a team first."""


class TooManyTags(Invalid):
    """A link can have at most {limit} tags."""


class TooManyNames(Invalid):
    """A link can have at most {limit} names."""


class UnknownRule(Invalid):
    """The link has no rule {number}, or it is listed twice. Leave the number of a new rule out."""


class RulesTooLong(Invalid):
    """The rules are too long together. Use fewer rules or shorter URLs."""


class UnsupportedSort(Invalid):
    """Public links can't be sorted by "{sort}". Use `created` or `updated`."""


class NotOwner(Forbidden):
    """You can view this link, but only its owners can do this."""


class PrimaryOwnerRequired(Forbidden):
    """You co-own this link, but only its primary owner can do this."""


class ChangedByAdmin(Forbidden):
    """An administrator did this, so only an administrator can undo it."""


class OwnerExists(Conflict):
    """This user already owns the link."""


class ShareExists(Conflict):
    """The link is already shared with this user."""


class PrimaryOwnerProtected(Conflict):
    """The primary owner can't be removed. Transfer the link first."""


class RenewalRequired(Conflict):
    """The link is disabled and has expired. Renew it first, then enable it."""
