"""Why a tag is suggested: sentences stored with a suggestion, and their translation.

They are stored in English, which is what the API shows. Pages translate them.
"""

import re
from typing import Final

from refract.web.i18n import mark, ngettext, translate_filled

REASON_SEPARATOR: Final = " · "
"""Between the reasons of a suggestion that was made twice."""
RULE_REASON: Final = mark("Your rule for {pattern}")
KEYWORD_REASON: Final = mark("Keyword of the page")
TITLE_REASON: Final = mark("In the title")
MENTIONS_REASON: Final = mark("Mentioned {n} times in the text")
FREQUENCY_REASON: Final = mark("Frequent in the text")
AI_KNOWN_REASON: Final = mark("Suggested by AI")
AI_NEW_REASON: Final = mark("Suggested by AI (new)")
_TEMPLATES: Final = (
    KEYWORD_REASON,
    TITLE_REASON,
    FREQUENCY_REASON,
    AI_KNOWN_REASON,
    AI_NEW_REASON,
    MENTIONS_REASON,
    RULE_REASON,
)
_SIMILAR: Final = re.compile(r"On (\d{1,9}) similar items?")


def format_similar_reason(count: int) -> str:
    return "On 1 similar item" if count == 1 else f"On {count} similar items"


def translate_reason(reason: str) -> str:
    """Return a stored reason in the current language; one of an older version as it is."""
    return REASON_SEPARATOR.join(map(_translate_part, reason.split(REASON_SEPARATOR)))


def _translate_part(reason: str) -> str:
    if match := _SIMILAR.fullmatch(reason):
        return ngettext("On {n} similar item", "On {n} similar items", int(match[1]))
    return translate_filled(reason, _TEMPLATES)
