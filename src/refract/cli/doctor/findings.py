"""What a doctor can say."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    WELL = "well"
    MIND = "mind"
    """It works, and one day it may not."""
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    verdict: Verdict
    sentence: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        return {"subject": self.subject, "verdict": self.verdict, "sentence": self.sentence, "remedy": self.remedy}


def well(subject: str, sentence: str) -> Finding:
    return Finding(subject, Verdict.WELL, sentence)


def mind(subject: str, sentence: str, remedy: str) -> Finding:
    return Finding(subject, Verdict.MIND, sentence, remedy)


def wrong(subject: str, sentence: str, remedy: str) -> Finding:
    return Finding(subject, Verdict.WRONG, sentence, remedy)
