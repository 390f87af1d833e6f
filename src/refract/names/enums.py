"""Words of names that are stored in tables. Loads no database code."""

from enum import StrEnum


class NameTarget(StrEnum):
    """The kinds of things that a name can point to."""

    LINK = "link"
    LIST = "list"
