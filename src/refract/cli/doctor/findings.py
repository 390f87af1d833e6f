"""Findings of `refract doctor`."""

from dataclasses import dataclass
from enum import StrEnum


class FindingStatus(StrEnum):
    """How serious a finding is."""

    OK = "ok"
    WARNING = "warn"
    """It works now, but may fail later."""
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of a check, with a remedy unless it is ok."""

    subject: str
    status: FindingStatus
    message: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the finding for `--json`."""
        return {
            "subject": self.subject,
            "status": self.status,
            "message": self.message,
            "remedy": self.remedy,
        }


def report_ok(subject: str, message: str) -> DoctorFinding:
    return DoctorFinding(subject, FindingStatus.OK, message)


def report_warning(subject: str, message: str, remedy: str) -> DoctorFinding:
    return DoctorFinding(subject, FindingStatus.WARNING, message, remedy)


def report_error(subject: str, message: str, remedy: str) -> DoctorFinding:
    return DoctorFinding(subject, FindingStatus.ERROR, message, remedy)
