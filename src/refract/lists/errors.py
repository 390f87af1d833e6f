"""What can go wrong with a list."""

from refract.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RefractError,
    Unauthenticated,
)


class ListNotFound(NotFound):
    """List not found."""


class EntryNotFound(NotFound):
    """The list doesn't have this entry."""


class SectionNotFound(NotFound):
    """The list doesn't have this section."""


class EmptyList(Invalid):
    """Add at least one entry before you publish the list."""


class TooManyEntries(Invalid):
    """A list can have at most {limit} entries."""


class TooManySections(Invalid):
    """A list can have at most {limit} sections."""


class TooManyUrls(Invalid):
    """You can add at most {limit} URLs at once."""


class ListImmutable(Conflict):
    """The list is published and can't be edited. Start a new edition, or delete it."""


class ListChanged(Conflict):
    """{name} has changed these details in the meantime. Reload the page to see the changes."""


class ListNotPublished(Conflict):
    """The list is still a draft. Publish it before you start a new edition."""


class SlugLocked(Conflict):
    """This is a new edition of /{slug} and keeps that name."""


class OrderMismatch(Conflict):
    """The order must contain each entry and section exactly once. Reload the list and try again."""


class ListUnavailable(RefractError):
    """This list is unavailable."""

    status = 410


class AnonymousListsDisabled(Unauthenticated):
    """Lists require an account here. Sign in, or send an API key."""


class AccountRequiredToPublish(Unauthenticated):
    """Publishing requires an account. Sign in, and this draft becomes yours."""


class AccountRequiredForName(Forbidden):
    """Choosing a name requires an account. Leave it out to get a generated one."""


class SensitiveName(Invalid):
    """The name "{name}" requires an account. Sign in, or choose another."""


class RemovedByAdmin(Forbidden):
    """An administrator removed this list, so only an administrator can restore it."""
