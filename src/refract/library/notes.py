"""Why the model had no say about an item."""

from enum import StrEnum


class Note(StrEnum):
    OVER_QUOTA = "OVER_QUOTA"
    SUGGESTIONS_OFF = "SUGGESTIONS_OFF"
    MODEL_UNAVAILABLE = "MODEL_UNAVAILABLE"
    MODEL_TOO_SLOW = "MODEL_TOO_SLOW"
    MODEL_NOT_UNDERSTOOD = "MODEL_NOT_UNDERSTOOD"
