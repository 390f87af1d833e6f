"""What a doctor can say."""

from dataclasses import dataclass
from enum import StrEnum


class FindingStatus(StrEnum):
    OK = "well"
    WARNING = "mind"
    """It works, and one day it may not."""
    ERROR = "wrong"


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One thing that was looked at."""

    subject: str
    status: FindingStatus
    message: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        return {
            "subject": self.subject,
            "verdict": self.status,
            "sentence": self.message,
            "remedy": self.remedy,
        }


def report_ok(subject: str, sentence: str) -> DoctorFinding:
    return DoctorFinding(subject, FindingStatus.OK, sentence)


def report_warning(subject: str, sentence: str, remedy: str) -> DoctorFinding:
    return DoctorFinding(subject, FindingStatus.WARNING, sentence, remedy)


def report_error(subject: str, sentence: str, remedy: str) -> DoctorFinding:
    return DoctorFinding(subject, FindingStatus.ERROR, sentence, remedy)
