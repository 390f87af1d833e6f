"""What Shlink's clients send, in Shlink's words."""

from typing import Any

from pydantic import Field

from refract.compat.schemas import ForeignFields


class ShortUrlFields(ForeignFields):
    """Fields of a short URL. Those that are null were not given, except in edits."""

    long_url: str | None = Field(default=None, alias="longUrl")
    tags: list[str] | None = None
    title: str | None = None
    valid_since: str | None = Field(default=None, alias="validSince")
    valid_until: str | None = Field(default=None, alias="validUntil")
    max_visits: int | None = Field(default=None, alias="maxVisits")
    crawlable: bool | None = None
    forward_query: bool | None = Field(default=None, alias="forwardQuery")


class NewShortUrl(ShortUrlFields):
    """A short URL to create."""

    custom_slug: str | None = Field(default=None, alias="customSlug")
    path_prefix: str | None = Field(default=None, alias="pathPrefix")
    find_if_exists: bool = Field(default=False, alias="findIfExists")
    domain: str | None = None


class TagRenaming(ForeignFields):
    """A tag and its new name."""

    old_name: str = Field(alias="oldName", min_length=1, max_length=200)
    new_name: str = Field(alias="newName", min_length=1, max_length=200)


class RedirectRules(ForeignFields):
    """The rules of a short URL, of which there are none here."""

    redirect_rules: list[Any] = Field(default_factory=list, alias="redirectRules")
