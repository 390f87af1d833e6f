"""Errors about files that are imported."""

from refract.core.errors import Invalid


class UnreadableFile(Invalid):
    """{problem}"""


class BadRecord(Exception):
    """A record that cannot become a row. The message is shown to people."""


class BrokenFile(Exception):
    """A file that cannot be read any further; records before it are good.

    The message is shown to people.
    """
