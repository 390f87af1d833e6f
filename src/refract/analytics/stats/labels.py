"""How values of breakdowns are shown to people."""

from refract.analytics.countries import name_of

_WORDS = {
    "devices": {"desktop": "Desktop", "mobile": "Mobile", "tablet": "Tablet", "bot": "Bot"},
    "referrers": {"direct": "Direct"},
}


def label_of(dimension: str, value: str) -> str:
    if dimension == "countries":
        return name_of(value) or "Unknown"
    return _WORDS.get(dimension, {}).get(value, value)
