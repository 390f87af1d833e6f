"""Preview cards: what chats show of a link, and the crawlers that they send. Pure.

A column of the link keeps its card as JSON, without the parts that it lacks.
"""

import json
import re
from dataclasses import asdict, dataclass
from typing import Final

MAX_CARD_DESCRIPTION: Final = 500
MAX_CRAWLER_BYTES: Final = 512
"""The part of a user agent in which a crawler is recognised."""

# As they name themselves. Messages of Apple and Line say that they are Facebook's, Signal that it
# is WhatsApp. In lower case, since alternatives that ignore case take twenty times as long.
_CRAWLERS: Final = re.compile(
    rb"slackbot|facebookexternalhit|facebookcatalog|facebot|twitterbot|discordbot|telegrambot"
    rb"|^whatsapp/|linkedinbot|skypeuripreview|microsoftpreview|bitlybot|redditbot|pinterestbot"
    rb"|\bmastodon/|pleroma|akkoma|misskey|summalybot|lemmy/|cardyb/|google-pagerenderer"
    rb"|\+/web/snippet|mattermost-bot|zulipurlpreview|\bsynapse\b.*matrix|viber/url"
    rb"|snap url preview|vkshare|odklbot|kakaotalk-scrap|line-poker|zalo/|embedly|iframely"
    rb"|meta-externalfetcher|quora link preview|tumblr/|flipboardproxy"
).search  # fmt: skip


@dataclass(frozen=True, slots=True)
class PreviewCard:
    """The title, description and picture of a link in chats. None is left to the chat."""

    title: str | None = None
    description: str | None = None
    image_url: str | None = None

    def to_json(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value}


def parse_card(text: str | None) -> PreviewCard | None:
    """Return the card in the column of a link."""
    if not text:
        return None
    facts = json.loads(text)
    return PreviewCard(facts.get("title"), facts.get("description"), facts.get("image_url"))


def format_card(card: PreviewCard) -> str | None:
    """Return the column of a card. It is empty for a card without any part."""
    facts = card.to_json()
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":")) if facts else None


def is_preview_crawler(agent: bytes) -> bool:
    """Return whether a user agent is that of a crawler which draws previews in chats."""
    return _CRAWLERS(agent[:MAX_CRAWLER_BYTES].lower()) is not None
