"""Errors of reports."""

from refract.core.errors import Conflict, NotFound


class ReportNotFound(NotFound):
    """Report not found."""


class ActionNotApplicable(Conflict):
    """This action doesn't apply to the report: {why}."""
