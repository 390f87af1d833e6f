"""Validation errors of the library's forms, in the language of the page."""

from typing import Any

from refract.web.i18n import gettext, ngettext


def translate_validation_error(error: Any) -> str:
    """Return the sentence for an error of pydantic (`ErrorDetails`)."""
    context = error.get("ctx") or {}
    match error["type"]:
        case "string_too_long":
            limit = int(context["max_length"])
            return ngettext("Enter at most {n} character.", "Enter at most {n} characters.", limit)
        case "too_long":
            limit = int(context["max_length"])
            return ngettext("Enter at most {n} entry.", "Enter at most {n} entries.", limit)
        case "string_too_short":
            return gettext("Enter some text.")
        case _:
            return gettext(str(error["msg"]).removeprefix("Value error, "))
