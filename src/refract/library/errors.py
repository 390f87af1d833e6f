"""What can go wrong in the library."""

from refract.core.errors import Conflict, Invalid, Limited, NotFound


class ItemNotFound(NotFound):
    """There is no such item."""


class EmptyText(Invalid):
    """There is nothing to save: write or paste something first."""


class UnknownTag(Invalid):
    """There is no tag {tag_id} among yours."""


class UnknownSuggestion(Invalid):
    """The item has no suggestion {suggestion_id}."""


class Undecided(Invalid):
    """A suggestion cannot be accepted and rejected at once: {suggestion_id}."""


class TooManyItemTags(Invalid):
    """An item carries at most {most} tags."""


class InvalidRule(Invalid):
    """The rule "{pattern}" cannot be used: {why}."""


class NoSuchPerson(NotFound):
    """There is no such person."""


class RuleNotFound(NotFound):
    """There is no such rule."""


class ImportNotFound(NotFound):
    """There is no such import."""


class ImportNotOpen(Conflict):
    """This import is {status}: {remedy}."""


class CaptureLimitReached(Limited):
    """You have saved {limit} items within an hour, which is the limit. Try again in {retry_after} seconds."""


class ItemLimitReached(Conflict):
    """Your library holds {limit} items, which is the limit: ask an administrator for more room."""


class StorageFull(Conflict):
    """Your library would take more than {limit}, which is the limit: ask an administrator for more room."""
