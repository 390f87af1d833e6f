"""The grammar of tags: valid names, and keys that identify a tag."""

import re
import unicodedata

from refract.core.phrases import Phrase
from refract.core.text import fold_text, make_excerpt
from refract.tags.errors import InvalidTag

MAX_NAME_LENGTH = 50
_SHARED_SIGNS = " -_+#.&'"
_COLOR = re.compile(r"#[0-9A-Fa-f]{6}")


def check_shared(name: str) -> str:
    """Return the trimmed name of a shared tag, or raise `InvalidTag`.

    Allowed are letters and digits of any script, with spaces and `-_+#.&'` between or after them:
    `C++`, `C#`, `.NET`, `R&D`.
    """
    name = _trim_name(name)
    if not _is_letter(name.removeprefix(".")[:1] or "."):
        raise InvalidTag(
            name=make_excerpt(name), why=Phrase("it must start with a letter or a number")
        )
    if not all(
        _is_letter(character) or _is_mark(character) or character in _SHARED_SIGNS
        for character in name
    ):
        raise InvalidTag(
            name=make_excerpt(name),
            why=Phrase(
                "use only letters, numbers, spaces and the signs {signs}", signs="- _ + # . & '"
            ),
        )
    return name


def check_personal(name: str) -> str:
    """Return the name of a personal tag without spaces and `#` around it, or raise `InvalidTag`.

    Allowed is printable text with at least one letter or digit.
    """
    name = _trim_name(re.sub(r"\s+", " ", name).strip(" ").lstrip("#"))
    if not any(_is_letter(character) for character in name):
        raise InvalidTag(name=make_excerpt(name), why=Phrase("it needs a letter or a number"))
    if not all(character.isprintable() and character not in ',<>"' for character in name):
        raise InvalidTag(
            name=make_excerpt(name),
            why=Phrase("it can't contain commas, quotes, <, > or invisible characters"),
        )
    return name


def personal_key(name: str) -> str:
    """Return the key of a personal tag: its name without case."""
    return fold_text(name)


def check_color(color: str) -> str:
    if not _COLOR.fullmatch(color):
        raise InvalidTag(name=make_excerpt(color), why=Phrase("write a color like #6B7280"))
    return color.upper()


def slugify(name: str) -> str:
    """Return the key of a shared tag.

    "Engineering Tools", "engineering tools" and "engineering_tools" are the same tag; "C", "C++"
    and "C#" are not.
    """
    return re.sub(r"[ _-]+", "-", fold_text(name)).strip("-")


def _trim_name(name: str) -> str:
    name = unicodedata.normalize("NFC", name).strip(" ")
    if not name:
        raise InvalidTag(name=make_excerpt(name), why=Phrase("it's empty"))
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTag(
            name=make_excerpt(name, MAX_NAME_LENGTH),
            why=Phrase("it has more than {limit} characters", limit=MAX_NAME_LENGTH),
        )
    return name


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LN"


def _is_mark(character: str) -> bool:
    """Return whether this is a combining mark, which many scripts use for vowels."""
    return unicodedata.category(character)[0] == "M"
