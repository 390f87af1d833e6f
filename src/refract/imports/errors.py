"""Errors about imports."""

from refract.core.errors import Conflict, NotFound


class ImportNotFound(NotFound):
    """Import not found."""


class ImportClosed(Conflict):
    """This import was already undone."""
