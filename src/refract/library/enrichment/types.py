"""Input and output of enrichment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from refract.library.models import Enrichment, SuggestionSource


@dataclass(frozen=True, slots=True)
class ExtractedPage:
    """An extracted page: plain text everywhere but in `html`, which has been sanitised."""

    url: str
    canonical_url: str | None = None
    title: str | None = None
    description: str | None = None
    author: str | None = None
    site: str | None = None
    language: str | None = None
    published_at: datetime | None = None
    image_url: str | None = None
    keywords: tuple[str, ...] = ()
    text: str = ""
    html: str = ""


@dataclass(frozen=True, slots=True)
class EnrichmentInput:
    """An item to enrich."""

    text: str
    url: str | None = None
    page: ExtractedPage | None = None
    language: str = "en"
    """The user's preference, used if the language of the text is unknown."""

    @property
    def body(self) -> str:
        return self.page.text if self.page is not None else self.text

    @property
    def headline(self) -> str:
        return (
            (self.page.title or "")
            if self.page is not None
            else self.text.strip().splitlines()[0]
            if self.text.strip()
            else ""
        )


@dataclass(frozen=True, slots=True)
class TaggingRule:
    pattern: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NeighbourItem:
    """A confirmed item and its tags."""

    words: Mapping[str, float]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UserBackground:
    """A user's tags (by key), rules and confirmed items, and the tags not to suggest."""

    vocabulary: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Merged names: the key of the old one → the name it means now."""
    rules: Sequence[TaggingRule] = ()
    neighbours: Sequence[NeighbourItem] = ()
    unwanted: frozenset[str] = frozenset()
    """Keys of tags that were rejected, or that the item has already."""


@dataclass(frozen=True, slots=True)
class SuggestedTag:
    name: str
    confidence: float
    reason: str
    source: SuggestionSource = SuggestionSource.SYSTEM


@dataclass(frozen=True, slots=True)
class EnrichmentProposal:
    """A suggested title, summary and tags."""

    title: str | None
    summary: str | None
    tags: Sequence[SuggestedTag]
    by: Enrichment = Enrichment.SYSTEM
