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
    """There is no such list."""


class EntryNotFound(NotFound):
    """The list has no such entry."""


class NoEntries(Invalid):
    """A list needs at least one entry before it can be published."""


class TooManyEntries(Invalid):
    """A list holds at most {most} entries."""


class TooManyAtOnce(Invalid):
    """At most {most} addresses can be added at once."""


class ListImmutable(Conflict):
    """The list is published, so it stays as it is: start a new edition, or delete it."""


class NotPublished(Conflict):
    """The list is still a draft: a new edition is made of a published one."""


class SlugSettled(Conflict):
    """This is a new edition of /{slug} and takes over that name, so it cannot have another."""


class OrderMismatch(Conflict):
    """The order must name every entry of the list exactly once: load the list again and repeat the change."""


class ListUnavailable(RefractError):
    """This list is not available."""

    status = 410


class AnonymousListsOff(Unauthenticated):
    """Lists need an account here: sign in, or send an API key."""


class PublishingNeedsAccount(Unauthenticated):
    """Publishing needs an account: sign in, and this draft becomes yours."""


class NamesNeedAccount(Forbidden):
    """Choosing a name needs an account: leave the name out, and one is generated."""


class SensitiveName(Invalid):
    """The name "{name}" needs an account: sign in, or choose another."""


class RemovedByAdministrator(Forbidden):
    """An administrator removed this list, so only an administrator can bring it back."""
