"""Schemas of the account API and the profile form."""

from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Any, Literal, Self
from zoneinfo import available_timezones

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from refract.core.errors import FieldError
from refract.core.phrases import Phrase
from refract.core.schemas import Id, InputSchema, OutputSchema
from refract.core.urls import BadUrl, parse_web_url
from refract.identity.errors import InvalidKeyExpiry, UnknownTimeZone
from refract.identity.models import ApiKey, Scope
from refract.web.i18n import LanguageTag


@cache
def list_time_zones() -> list[str]:
    """Return the names of all time zones, sorted. Listing them takes 5 ms once."""
    return sorted(available_timezones())


def _check_time_zone(name: str) -> str:
    if name not in list_time_zones():
        raise ValueError(UnknownTimeZone(name=name).message)
    return name


def _check_web_url(text: str) -> str:
    try:
        return parse_web_url(text).href
    except BadUrl as exc:
        raise ValueError(str(exc)) from exc


SAME_AS_BROWSER = "browser"
"""The value of a choice without a preference. Not empty: an empty field counts as absent."""
MAX_KEY_LIFETIME = timedelta(days=3653)
KeyName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]


class PreferencesPatch(InputSchema):
    """Preferences to change; absent means unchanged."""

    locale: (
        Annotated[
            LanguageTag, Field(description="Language of the web app; null follows the browser.")
        ]
        | None
    ) = None
    language: (
        Annotated[Literal["en", "zh"], Field(description="Language of summaries and tags.")] | None
    ) = None
    time_zone: (
        Annotated[
            str,
            AfterValidator(_check_time_zone),
            Field(
                max_length=64,
                description="Zone of the days in analytics; null follows the browser.",
                examples=["Europe/Berlin"],
            ),
        ]
        | None
    ) = None
    suggestions: bool | None = None
    auto_confirm: (
        Annotated[
            float,
            Field(
                ge=0.5,
                le=1,
                description="Approve items automatically from this confidence on; null never does.",
            ),
        ]
        | None
    ) = None


class Preferences(OutputSchema):
    """Preferences of a user."""

    model_config = ConfigDict(extra="ignore")

    locale: LanguageTag | None = None
    language: Literal["en", "zh"] = "en"
    time_zone: str | None = None
    suggestions: bool = True
    auto_confirm: float | None = None


class ProfilePatch(InputSchema):
    """Profile fields to change. Absent means unchanged, null clears."""

    nickname: (
        Annotated[
            str,
            StringConstraints(strip_whitespace=True, min_length=1, max_length=40),
            Field(examples=["Ada"]),
        ]
        | None
    ) = None
    avatar_url: (
        Annotated[
            str,
            AfterValidator(_check_web_url),
            Field(max_length=2048, examples=["https://example.com/ada.png"]),
        ]
        | None
    ) = None
    bio: (
        Annotated[
            str,
            StringConstraints(max_length=200),
            Field(examples=["I collect links about engines."]),
        ]
        | None
    ) = None
    preferences: PreferencesPatch | None = None


class ProfileForm(BaseModel):
    """The forms of profile, preferences and suggestions, every field as text."""

    section: Literal["profile", "preferences", "suggestions"] | None = None
    """The part that is saved; absent, all of them."""
    nickname: str = ""
    bio: str = ""
    avatar_url: str = ""
    locale: str | None = None
    """A language, or `SAME_AS_BROWSER`; absent leaves the choice as it is."""
    language: str = "en"
    time_zone: str | None = None
    """A zone, or `SAME_AS_BROWSER`; absent leaves the choice as it is."""
    suggestions: bool = False
    auto_confirm: str | None = None
    """A confidence, or `never`; absent leaves the choice as it is."""

    def read_changes(self) -> tuple[dict[str, str | None], dict[str, Any]]:
        """Return the fields of the profile and the preferences that the form changes."""
        typed: dict[str, str | None] = {}
        preferences: dict[str, Any] = {}
        if self.section in {None, "profile"}:
            names = ["nickname", "bio", *(["avatar_url"] if self.section is None else [])]
            typed = {name: getattr(self, name).strip() or None for name in names}
        if self.section in {None, "preferences"}:
            for name in ("time_zone", "locale"):
                if value := getattr(self, name):
                    preferences[name] = None if value == SAME_AS_BROWSER else value
        if self.section in {None, "suggestions"}:
            preferences |= {"language": self.language, "suggestions": self.suggestions}
            if self.auto_confirm is not None:
                sure = None if self.auto_confirm == "never" else self.auto_confirm
                preferences["auto_confirm"] = sure
        return typed, preferences


class Me(OutputSchema):
    """The profile of the caller."""

    id: Id
    email: str = Field(examples=["ada@example.com"])
    display_name: str = Field(examples=["Ada Lovelace"])
    nickname: str | None = Field(examples=["Ada"])
    avatar_url: str | None = Field(examples=["https://example.com/ada.png"])
    bio: str | None = Field(examples=["I collect links about engines."])
    preferences: Preferences
    plan: Literal["free", "pro"]
    role: Literal["user", "admin"]


KeyExpiry = Annotated[
    AwareDatetime | None,
    Field(
        examples=["2027-01-31T12:00:00Z"],
        description=(
            "When it stops working, at most ten years ahead; null never does. A key made by a key"
            " ends with it at the latest."
        ),
    ),
]


class KeyCreate(InputSchema):
    """A new API key."""

    name: KeyName = Field(examples=["Blog automation"])
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))] = Field(
        default_factory=lambda: [Scope.READ, Scope.WRITE]
    )
    expires_at: KeyExpiry = None


def check_key_expiry(expires_at: datetime | None, now: datetime) -> None:
    """Raise `InvalidKeyExpiry` for an expiry in the past or more than ten years ahead."""
    if expires_at is not None and not now < expires_at <= now + MAX_KEY_LIFETIME:
        raise InvalidKeyExpiry(
            errors=[FieldError("expires_at", Phrase("Choose a date within the next ten years."))]
        )


class KeyOut(OutputSchema):
    """An API key, without the key itself."""

    id: Id
    name: str = Field(examples=["Blog automation"])
    prefix: str = Field(validation_alias="key_prefix", examples=["refract_4fG7h2Kq"])
    scopes: list[Scope]
    status: Literal["active", "revoked", "expired"]
    created_at: datetime
    expires_at: datetime | None
    parent_id: Id | None = Field(
        description="The key that made this one. Revoking it revokes this one too."
    )
    last_used_at: datetime | None
    last_used_network: str | None = Field(
        examples=["203.0.113.0/24"],
        description="The network of the last request, anonymised to /24 or /48.",
    )
    usage_count: int

    @classmethod
    def from_key(cls, key: ApiKey, at: datetime) -> Self:
        """Return a key with its status at a given time."""
        return cls.model_validate(key).model_copy(update={"status": key.status_at(at)})


class NewKey(KeyOut):
    """A new API key. Only this response contains the key itself."""

    key: str | None = Field(
        examples=["refract_4fG7h2KqT0…"],
        description="Shown once. A repeated answer to the same Idempotency-Key has null here.",
    )

    @classmethod
    def from_new_key(cls, row: ApiKey, clear: str) -> Self:
        shown = KeyOut.model_validate(row).model_dump(by_alias=False)
        return cls(**shown | {"key_prefix": row.key_prefix}, key=clear)


class KeyList(OutputSchema):
    """API keys, all in one page."""

    items: list[KeyOut]
    next_cursor: str | None = None


class SessionOut(OutputSchema):
    """A browser that is signed in."""

    id: Id
    agent: str = Field(examples=["Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"])
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    current: bool = False


class SessionList(OutputSchema):
    """Signed-in browsers, all in one page."""

    items: list[SessionOut]
    next_cursor: str | None = None


def get_chosen_preferences(patch: PreferencesPatch | None) -> dict[str, Any]:
    """Return the preferences that a patch names. Null counts as absent unless it is a choice."""
    named = {} if patch is None else patch.model_dump(exclude_unset=True)
    return {
        name: value
        for name, value in named.items()
        if value is not None or name in {"auto_confirm", "locale", "time_zone"}
    }
