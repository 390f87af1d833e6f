"""Errors of reports."""

from refract.core.errors import Conflict, NotFound


class ReportNotFound(NotFound):
    """There is no such report."""


class ActionUnfit(Conflict):
    """This does not fit the report: {why}."""
