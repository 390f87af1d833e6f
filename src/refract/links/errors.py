"""What can go wrong with a link."""

from refract.core.errors import Conflict, Forbidden, Invalid, NotFound


class LinkNotFound(NotFound):
    """There is no such link."""


class NameNotFound(NotFound):
    """The link has no name "{name}"."""


class OwnerNotFound(NotFound):
    """This person does not own the link."""


class ShareNotFound(NotFound):
    """The link is not shared with this person."""


class InvitationNotFound(NotFound):
    """There is no such invitation, or it has expired or been withdrawn."""


class TooManyInvitations(Conflict):
    """A link has at most {most} open invitations: withdraw one first."""


class VersionNotFound(NotFound):
    """The link has no version {version}."""


class PastExpiry(Invalid):
    """The expiry lies in the past: choose a moment that is still to come."""


class TooManyTags(Invalid):
    """A link carries at most {most} tags."""


class TooManyNames(Invalid):
    """A link has at most {most} names."""


class SortUnavailable(Invalid):
    """Public links cannot be sorted by "{sort}": clicks are for owners. Use `created` or `updated`."""


class NotYours(Forbidden):
    """You may look at this link, but only its owners may do this."""


class OnlyAdministrators(Forbidden):
    """An administrator did this, so only an administrator can take it back."""


class OwnerExists(Conflict):
    """This person already owns the link."""


class ShareExists(Conflict):
    """The link is already shared with this person."""


class PrimaryOwnerProtected(Conflict):
    """The primary owner cannot be removed: transfer the link first."""


class RenewalNeeded(Conflict):
    """The link is disabled and its expiry has passed: renew it first, then enable it."""
