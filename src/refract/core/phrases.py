"""English sentences that can be translated later."""

from typing import Self


class Phrase(str):
    """An English sentence that remembers its template and values, so that a page can translate it.

    Services and errors make phrases, because they don't know the reader's language. Programs and
    logs see plain English; `refract.web.i18n.translate` returns the sentence in the language of
    the page.
    """

    __slots__ = ("template", "values")
    template: str
    values: dict[str, object]

    def __new__(cls, template: str, /, **values: object) -> Self:
        text = template.format_map(values) if values else template
        phrase = super().__new__(cls, text)
        phrase.template = template
        phrase.values = values
        return phrase

    def __str__(self) -> str:
        """Return the phrase itself, so that `str(exc)` of an exception keeps it translatable."""
        return self


class CountPhrase(Phrase):
    """A phrase with a singular and a plural form. `{n}` is the number, with separators."""

    __slots__ = ("number", "singular")
    number: int
    singular: str

    def __new__(cls, singular: str, plural: str, number: int, /, **values: object) -> Self:
        template = singular if number == 1 else plural
        phrase = str.__new__(cls, template.format(n=f"{number:,}", **values))
        phrase.template, phrase.singular, phrase.number = plural, singular, number
        phrase.values = values
        return phrase
