"""What can go wrong in the library."""

from refract.core.errors import Conflict, Invalid, Limited, NotFound


class ItemNotFound(NotFound):
    """Item not found."""


class EmptyText(Invalid):
    """Nothing to save. Write or paste something first."""


class UnknownTag(Invalid):
    """You don't have a tag {tag_id}."""


class UnknownSuggestion(Invalid):
    """The item doesn't have a suggestion {suggestion_id}."""


class ConflictingDecision(Invalid):
    """Suggestion {suggestion_id} can't be both accepted and rejected."""


class TooManyItemTags(Invalid):
    """An item can have at most {limit} tags."""


class InvalidRule(Invalid):
    """The rule "{pattern}" is invalid: {why}."""


class RuleNotFound(NotFound):
    """Rule not found."""


class CaptureLimitReached(Limited):
    """You saved {limit} items within an hour, which is the limit.

    Try again in {wait}.
    """


class ItemLimitReached(Conflict):
    """Your library has {limit} items, which is the limit. Ask an administrator for more room."""


class StorageLimitReached(Conflict):
    """Your library would exceed {limit}, which is the limit. Ask an administrator for more room."""
