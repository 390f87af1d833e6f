"""A language that nobody speaks: every message of the catalogue is bracketed and accented, so
whatever is not stands out.
"""

import re
from functools import cached_property
from gettext import NullTranslations

from babel.messages.pofile import read_po

from refract.web.i18n import Locale
from tools.messages import TEMPLATE

OPENING, CLOSING = "⟦", "⟧"
_ACCENTS = str.maketrans(
    "ACDEGHIKLNOPRSTUWYZacdeghiklnoprstuwyz",
    "ÅÇÐÉĜĤÎĶĻÑÖÞŔŠŢÛŴÝŽåçðéĝĥîķļñöþŕšţûŵýž",
)
_KEPT = re.compile(r"\{\w*\}|<[^<>]*>|&\w+;")
"""Placeholders, tags and entities."""


def accent(message: str) -> str:
    """Return a message as the pseudo-locale says it."""
    words, kept = _KEPT.split(message), [*_KEPT.findall(message), ""]
    return (
        OPENING
        + "".join(text.translate(_ACCENTS) + whole for text, whole in zip(words, kept, strict=True))
        + CLOSING
    )


class PseudoTranslations(NullTranslations):
    """A catalogue that has exactly the messages of refract.pot."""

    def __init__(self) -> None:
        super().__init__()
        with TEMPLATE.open("rb") as file:
            self._known = {
                form
                for message in read_po(file)
                for form in (message.id if isinstance(message.id, tuple) else (message.id,))
            }

    def gettext(self, message: str) -> str:
        return accent(message) if message in self._known else message

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)

    def pgettext(self, context: str, message: str) -> str:  # noqa: ARG002 - the library's signature
        return self.gettext(message)


class PseudoLocale(Locale):
    """English, accented."""

    @property
    def folder(self) -> str:
        return "en"

    @cached_property
    def translations(self) -> NullTranslations:
        return PseudoTranslations()


PSEUDO = PseudoLocale("en-XA", "Pseudo")
