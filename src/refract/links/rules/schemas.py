"""Rules of a link in the API."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from refract.core.errors import RefractError
from refract.core.phrases import Phrase
from refract.core.schemas import Id, InputSchema, OutputSchema, Timestamp, explain_errors
from refract.core.urls import BadUrl, parse_web_url
from refract.identity.time_zones import parse_zone
from refract.links.rules.document import MAX_RULES, LinkRule

DEVICES = ("desktop", "mobile", "tablet", "bot")
SYSTEMS = ("android", "ios", "macos", "windows", "linux", "other")
BROWSERS = ("chrome", "edge", "firefox", "opera", "safari", "samsung", "other")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MAX_VALUES = 50

Country = Annotated[
    str,
    StringConstraints(strip_whitespace=True, to_upper=True, pattern=r"^[A-Za-z]{2}$"),
    explain_errors(Phrase("Enter a country code of two letters, such as AT.")),
]
Language = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True,
        to_lower=True,
        pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$",
    ),
    explain_errors(Phrase("Enter a language code, such as de or pt-BR.")),
]
ClockTime = Annotated[
    str,
    StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$"),
    explain_errors(Phrase("Enter a time from 00:00 to 23:59, such as 09:30.")),
]


def _normalize_host(text: str) -> str:
    try:
        url = parse_web_url(f"https://{text.strip().rstrip('.')}/")
    except BadUrl as exc:
        raise ValueError(Phrase("Enter a host, such as example.com.")) from exc
    if url.path != "/" or url.port or url.query or url.fragment:
        raise ValueError(Phrase("Enter a host, such as example.com."))
    return url.host


def _check_zone(name: str) -> str:
    try:
        return parse_zone(name).key
    except RefractError as exc:
        raise ValueError(exc.message) from exc


ReferrerHost = Annotated[str, StringConstraints(max_length=253), AfterValidator(_normalize_host)]
ZoneName = Annotated[str, StringConstraints(max_length=100), AfterValidator(_check_zone)]


class QueryCondition(InputSchema):
    """A query parameter of the request."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    value: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="Null: any value will do."
    )


def _require_days(days: list[str]) -> list[str]:
    if not days:
        raise ValueError(
            Phrase("Choose the weekdays of these hours, or clear the hours and the time zone.")
        )
    return days


class WeeklyHours(InputSchema):
    """Hours of some weekdays. Hours that end before they begin last until the next day."""

    days: Annotated[
        list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]],
        Field(max_length=7, json_schema_extra={"minItems": 1}),
        AfterValidator(_require_days),
    ]
    begin: ClockTime = Field(examples=["09:00"])
    end: ClockTime = Field(examples=["17:00"], description="The first minute after them.")
    zone: ZoneName = Field(examples=["Europe/Berlin"])


class RuleConditions(InputSchema):
    """The conditions of a rule. All that are given must hold; of a list, one value is enough."""

    devices: Annotated[
        list[Literal["desktop", "mobile", "tablet", "bot"]], Field(max_length=len(DEVICES))
    ] = Field(default_factory=list)
    systems: Annotated[
        list[Literal["android", "ios", "macos", "windows", "linux", "other"]],
        Field(max_length=len(SYSTEMS)),
    ] = Field(default_factory=list)
    browsers: Annotated[
        list[Literal["chrome", "edge", "firefox", "opera", "safari", "samsung", "other"]],
        Field(max_length=len(BROWSERS)),
    ] = Field(default_factory=list)
    countries: Annotated[
        list[Country],
        Field(max_length=250, description="ISO 3166 codes of two letters.", examples=[["DE"]]),
    ] = Field(default_factory=list)
    languages: Annotated[
        list[Language],
        Field(
            max_length=MAX_VALUES,
            description=(
                "Language tags. `de` includes `de-AT`; only languages that the visitor's browser"
                " asks for with a quality of 0.9 or more count."
            ),
            examples=[["de"]],
        ),
    ] = Field(default_factory=list)
    query: Annotated[
        list[QueryCondition], Field(max_length=10, description="All of them are required.")
    ] = Field(default_factory=list)
    referrers: Annotated[
        list[ReferrerHost],
        Field(max_length=MAX_VALUES, description="Hosts, each with those below it."),
    ] = Field(default_factory=list)
    after: Timestamp | None = Field(default=None, description="From this time on.")
    before: Timestamp | None = Field(default=None, description="Until this time.")
    hours: WeeklyHours | None = None
    share: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None,
        description=(
            "Percent of the visitors. Each visitor gets the same answer for a day. A share begins"
            " where that of the rule before ends."
        ),
        examples=[None],
    )

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        if self.after is not None and self.before is not None and self.after >= self.before:
            raise ValueError(Phrase("`after` must be earlier than `before`."))
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the conditions that are given, as they are stored."""
        return {
            name: value
            for name, value in self.model_dump(mode="json").items()
            if value not in (None, [])
        }


class LinkRuleIn(InputSchema):
    """A rule: where some visitors are sent instead of the link's destination."""

    number: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="The number of an existing rule to keep. Omitted: a new one.",
        examples=[None],
    )
    destination: Annotated[
        str, Field(json_schema_extra={"maxLength": 2048}, examples=["https://example.com/de"])
    ]
    conditions: RuleConditions = Field(examples=[{"languages": ["de"], "devices": ["mobile"]}])

    @model_validator(mode="after")
    def _require_condition(self) -> Self:
        if not self.conditions.to_json():
            raise ValueError(
                Phrase(
                    "A rule needs at least one condition. All other visitors get the destination"
                    " of the link."
                )
            )
        return self


LinkRules = Annotated[
    list[LinkRuleIn],
    Field(max_length=MAX_RULES, description="The rules, in the order in which they are tried."),
]


def _drop_numbers(rules: list[LinkRuleIn]) -> list[LinkRuleIn]:
    """Drop the numbers that rules had on another link. Clicks of a new link carry new ones."""
    return [rule.model_copy(update={"number": None}) for rule in rules]


NewLinkRules = Annotated[
    LinkRules,
    AfterValidator(_drop_numbers),
    Field(
        description=(
            "Rules that send some visitors elsewhere, in the order in which they are tried. They"
            " get new numbers."
        ),
        examples=[[]],
    ),
]


class LinkRulesIn(InputSchema):
    """All rules of a link, in the order in which they are tried. The first match decides."""

    rules: LinkRules


class LinkRuleOut(OutputSchema):
    """A rule of a link."""

    number: int = Field(description="Stays the same when rules are changed or moved.")
    destination: str
    conditions: RuleConditions


class LinkRulesOut(OutputSchema):
    """The rules of a link, in the order in which they are tried."""

    link_id: Id
    version: int = Field(description="The version of the link, for If-Match.")
    rules: list[LinkRuleOut]


def build_rule_out(rule: LinkRule) -> LinkRuleOut:
    conditions = RuleConditions.model_validate(rule.conditions)
    return LinkRuleOut(number=rule.number, destination=rule.destination, conditions=conditions)
