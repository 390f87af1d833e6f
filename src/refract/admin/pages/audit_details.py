"""Details of audit entries in the language of the page.

They are stored in English, which is what the API shows.
"""

import re
from collections.abc import Callable
from typing import Final

from refract.identity.models import UserPlan, UserRole, UserStatus
from refract.links.enums import FlagReason
from refract.links.pages.history import FIELD_LABELS, format_reason
from refract.web.i18n import LazyText, lazy_gettext, mark, ngettext, translate_filled

_PROFILE_LABELS: Final[dict[str, LazyText]] = {
    "nickname": lazy_gettext("Nickname"),
    "bio": lazy_gettext("About you"),
    "avatar_url": lazy_gettext("Avatar URL"),
    "locale": lazy_gettext("Language"),
    "time_zone": lazy_gettext("Time zone"),
    "language": lazy_gettext("Language of summaries and tags"),
    "suggestions": lazy_gettext("Suggest titles, summaries and tags"),
    "auto_confirm": lazy_gettext("Auto-approve saves"),
}
_VALUE_LABELS: Final[dict[str, LazyText]] = {
    UserRole.ADMIN: lazy_gettext("Administrator"),
    UserRole.USER: lazy_gettext("Member"),
    UserStatus.ACTIVE: lazy_gettext("Active"),
    UserStatus.SUSPENDED: lazy_gettext("Suspended"),
    UserPlan.FREE: lazy_gettext("Free"),
    UserPlan.PRO: lazy_gettext("Pro"),
    "by setting": lazy_gettext("by setting"),
}
_ORIGIN_LABELS: Final[dict[str, LazyText]] = {
    "command line": lazy_gettext("Command line"),
    "one-time link": lazy_gettext("One-time link"),
    "invitation": lazy_gettext("Invitation"),
}
_LINK_PHRASES: Final = (
    mark("owners added {user_id}"),
    mark("owners removed {user_id}"),
    mark("owners primary {user_id}"),
    mark("teams added {team_id}"),
    mark("teams removed {team_id}"),
    mark("teams primary {team_id}"),
    mark("shares added {user_id}"),
    mark("shares removed {user_id}"),
)
_REFUSAL_PHRASES: Final = (
    mark("no key from elsewhere: {count}"),
    mark("no key from {network}: {count}"),
    mark("others: {count}"),
    mark("{prefix} from elsewhere: {count}"),
    mark("{prefix} from {network}: {count}"),
)
_INVITED: Final = (mark("owner {user_id}"), mark("primary {user_id}"))
_TEAM_PHRASES: Final = (
    mark("member {user_id}"),
    mark("manager {user_id}"),
    mark("by group {user_id}"),
)
_ENDED: Final = re.compile(r"(\d{1,9}) by (.+), back-channel")
_REFUSED: Final = re.compile(r"(\d{1,9}) attempts?: (.+)")


def translate_detail(action: str, detail: str) -> str:
    """Return the detail of an entry in the current language; ids, names and codes stay."""
    if action in _TRANSLATORS:
        return _TRANSLATORS[action](detail)
    return _translate_link_change(detail) if action.startswith("link.") else detail


def _translate_words(labels: dict[str, LazyText]) -> Callable[[str], str]:
    """Return a function that translates words separated by commas."""
    return lambda detail: ", ".join(str(labels.get(word, word)) for word in detail.split(", "))


def _translate_link_change(detail: str) -> str:
    if detail.partition(" ")[0] in set(FlagReason):
        return format_reason(detail)
    parts = (
        str(FIELD_LABELS.get(part) or translate_filled(part, _LINK_PHRASES))
        for part in detail.split(", ")
    )
    return ", ".join(parts)


def _translate_refusals(detail: str) -> str:
    match = _REFUSED.fullmatch(detail)
    if match is None:
        return detail
    parts = [translate_filled(part, _REFUSAL_PHRASES) for part in match[2].split("; ")]
    return ngettext(
        "{n} attempt: {parts}", "{n} attempts: {parts}", int(match[1]), parts="; ".join(parts)
    )


def _translate_ended_sessions(detail: str) -> str:
    match = _ENDED.fullmatch(detail)
    if match is None:
        return detail
    return ngettext(
        "{n} session, by {provider}",
        "{n} sessions, by {provider}",
        int(match[1]),
        provider=match[2],
    )


_TRANSLATORS: Final[dict[str, Callable[[str], str]]] = {
    "profile.changed": _translate_words(_PROFILE_LABELS),
    "role.changed": _translate_words(_VALUE_LABELS),
    "status.changed": _translate_words(_VALUE_LABELS),
    "invitation.created": _translate_words(_VALUE_LABELS),
    "plan.changed": _translate_words(_VALUE_LABELS),
    "signed_in": _translate_words(_ORIGIN_LABELS),
    "key.created": _translate_words(_ORIGIN_LABELS),
    "key.revoked": _translate_words(_ORIGIN_LABELS),
    "sessions.ended": _translate_ended_sessions,
    "credentials.refused": _translate_refusals,
    "link.owner_invited": lambda detail: translate_filled(detail, _INVITED),
    **dict.fromkeys(
        ("team.member_added", "team.member_removed", "team.role_changed"),
        lambda detail: translate_filled(detail, _TEAM_PHRASES),
    ),
}
