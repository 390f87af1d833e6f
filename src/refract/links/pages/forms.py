"""The fields of a link's form, validated like a request of the API, with errors by field."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.datastructures import FormData

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.links import service
from refract.links.campaigns.parameters import UTM_KEYS, set_campaign
from refract.links.campaigns.service import apply_template
from refract.links.dependencies import charge_code_like_names
from refract.links.schemas import LinkCreate
from refract.links.service import CreatedLink
from refract.web.i18n import lazy_gettext, translate_error
from refract.web.problems import list_field_errors

CAMPAIGN_FIELDS = list(
    zip(
        UTM_KEYS,
        (
            (lazy_gettext("Source"), "newsletter"),
            (lazy_gettext("Medium"), "email"),
            (lazy_gettext("Campaign"), "spring-launch"),
            (lazy_gettext("Term"), "running shoes"),
            (lazy_gettext("Content"), "header-button"),
        ),
        strict=True,
    )
)
"""The name of a field, its label and an example."""
TEXT_FIELDS = ("destination", "title", "notes")
CARD_FIELDS = {
    "card_title": "title",
    "card_description": "description",
    "card_image": "image_url",
}
"""The parts of a preview card, by their fields."""
_TIME_FIELDS = {"starts": "starts_at", "expires": "expires_at"}
_MAX_OFFSET_MINUTES = 14 * 60
_MAX_CAMPAIGN_LENGTH = 20_000


def read_values(form: FormData) -> dict[str, str]:
    """Return all text fields as typed. A checkbox overrides the hidden field of its name."""
    return {
        name: text for name, text in form.multi_items() if isinstance(text, str) and name != "csrf"
    }


def parse_fields(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the API that the form has. A missing field is not changed."""
    given: dict[str, Any] = {
        name: values[name].strip() if name == "destination" else values[name]
        for name in TEXT_FIELDS
        if name in values
    }
    if "destination" in given:
        given["destination"] = _apply_campaign(given["destination"], values)
    if "tags" in values:
        given["tags"] = [tag.strip() for tag in values["tags"].split(",") if tag.strip()]
    if values.get("redirect_status", "").isdigit():
        given["redirect_status"] = int(values["redirect_status"])
    if values.get("visibility"):
        given["visibility"] = values["visibility"]
    if values.get("team"):
        given["team"] = values["team"]
    given |= {name: values[name] == "1" for name in ("forward_query", "noindex") if name in values}
    if values.get("utm_template"):
        given["utm_template"] = values["utm_template"]
    if values.get("password"):
        given["password"] = values["password"]
    if any(name in values for name in CARD_FIELDS):
        card = {part: values[name].strip() for name, part in CARD_FIELDS.items() if name in values}
        given["preview_card"] = card if any(card.values()) else None
    return given | _parse_schedule(values)


def _parse_schedule(values: Mapping[str, str]) -> dict[str, Any]:
    """Return when and how often a link redirects, and where it leads otherwise."""
    moments = {
        field: parse_local_time(values[name], values.get(f"{name}_zone", ""))
        for name, field in _TIME_FIELDS.items()
        if name in values
    }
    urls = {name: values[name].strip() or None for name in service.SUBSTITUTES if name in values}
    limit = (
        {"click_limit": values["click_limit"].strip() or None} if "click_limit" in values else {}
    )
    return moments | urls | limit


def _apply_campaign(destination: str, values: Mapping[str, str]) -> str:
    """Return the destination with the campaign fields that were changed.

    `utm_shown` has them as the form showed them: where both were edited, the field wins, and
    fields that were left alone never undo an edit of the destination.
    """
    shown = dict(parse_qsl(values.get("utm_shown", "")[:_MAX_CAMPAIGN_LENGTH]))
    typed = {key: values[key].strip() for key in UTM_KEYS if key in values}
    changes = {key: value for key, value in typed.items() if value != shown.get(key, "")}
    return set_campaign(destination, changes) if changes and destination else destination


def parse_local_time(typed: str, zone: str) -> datetime | str | None:
    """Return the moment of a date field in UTC, or None when it is blank.

    `zone` is how many minutes the browser's clock is behind UTC; without script it is 0.
    Text that is not a date is returned as it is, for validation to reject.
    """
    if not typed.strip():
        return None
    minutes = int(zone) if zone.lstrip("-").isdecimal() and zone.isascii() and len(zone) < 6 else 0
    try:
        local = datetime.fromisoformat(typed.strip()).replace(tzinfo=UTC)
        return local + timedelta(
            minutes=max(-_MAX_OFFSET_MINUTES, min(_MAX_OFFSET_MINUTES, minutes))
        )
    except (ValueError, OverflowError):
        return typed


def map_errors(problem: ValidationError | RefractError) -> dict[str, str]:
    """Return messages by form field. One that concerns no field is shown at the destination."""
    if isinstance(problem, ValidationError):
        return {
            _FORM_FIELDS.get(error.field) or _FORM_FIELDS.get(name, name): error.message
            for error in list_field_errors(problem.errors())
            for name in (error.field.split(".")[0],)
        }
    message = translate_error(problem)
    if problem.errors:
        return {problem.errors[0].field: message}
    for word, field in _FIELD_BY_CODE.items():
        if word in problem.code:
            return {field: message}
    return {"destination": message}


_FORM_FIELDS = {
    "names": "name",
    "starts_at": "starts",
    "expires_at": "expires",
    **{f"preview_card.{part}": name for name, part in CARD_FIELDS.items()},
}
_FIELD_BY_CODE = {
    "DOMAIN": "domain",
    "SLUG": "name",
    "NAME": "name",
    "TAG": "tags",
    "START": "starts",
    "EXPIR": "expires",
    "PASSWORD": "password",
    "PAST": "expires",
    "TEAM_REQUIRED": "visibility",
    "UNLISTED_REQUIRED": "visibility",
    "TEAM": "team",
    "UTM": "utm_template",
}


async def create_from_form(
    rt: Runtime, actor: Caller, values: Mapping[str, str]
) -> tuple[CreatedLink | None, dict[str, str]]:
    """Create a link from a form. Return it, or None and the errors by field."""
    name = values.get("name", "").strip().removeprefix("/")
    try:
        new = LinkCreate.model_validate(
            {
                "destination": "",
                **parse_fields(values),
                "names": [name] if name else [],
                **({"domain": values["domain"] or None} if "domain" in values else {}),
            }
        )
        await charge_code_like_names(rt, actor, new.names)
        new = await apply_template(rt, actor.user.id, new)
        checked = await service.check_link(rt, new)
        async with rt.db.write() as session:
            return await service.create_link(session, rt, actor.user, checked), {}
    except ValidationError as exc:
        return None, map_errors(exc)
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return None, map_errors(exc)


async def shorten_url(
    rt: Runtime, actor: Caller, destination: str, name: str = ""
) -> tuple[int | None, dict[str, str]]:
    """Create a link from a URL and an optional name. Return its id, or None and errors by field."""
    made, errors = await create_from_form(rt, actor, {"destination": destination, "name": name})
    return made.card.link.id if made else None, errors
