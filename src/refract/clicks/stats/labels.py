"""Names of the values of breakdowns: sites, systems, countries, languages, rules."""

from typing import Final

from refract.clicks.countries import get_country_name
from refract.clicks.languages import load_language_names
from refract.clicks.rollups.breakdowns import NO_RULE

_DEVICES: Final = {"desktop": "Desktop", "mobile": "Mobile", "tablet": "Tablet", "bot": "Bot"}
_SYSTEMS: Final = {"Mac OS X": "macOS", "Chrome OS": "ChromeOS"}
_SITES: Final = {
    "baidu.com": "Baidu",
    "bing.com": "Bing",
    "bsky.app": "Bluesky",
    "chatgpt.com": "ChatGPT",
    "claude.ai": "Claude",
    "discord.com": "Discord",
    "duckduckgo.com": "DuckDuckGo",
    "ecosia.org": "Ecosia",
    "facebook.com": "Facebook",
    "github.com": "GitHub",
    "gitlab.com": "GitLab",
    "instagram.com": "Instagram",
    "linkedin.com": "LinkedIn",
    "lnkd.in": "LinkedIn",
    "mail.google.com": "Gmail",
    "mastodon.social": "Mastodon",
    "medium.com": "Medium",
    "news.google.com": "Google News",
    "news.ycombinator.com": "Hacker News",
    "notion.so": "Notion",
    "outlook.live.com": "Outlook",
    "outlook.office.com": "Outlook",
    "perplexity.ai": "Perplexity",
    "pinterest.com": "Pinterest",
    "qwant.com": "Qwant",
    "reddit.com": "Reddit",
    "slack.com": "Slack",
    "startpage.com": "Startpage",
    "stackoverflow.com": "Stack Overflow",
    "t.co": "X",
    "t.me": "Telegram",
    "teams.microsoft.com": "Microsoft Teams",
    "telegram.org": "Telegram",
    "threads.net": "Threads",
    "tiktok.com": "TikTok",
    "twitter.com": "X",
    "whatsapp.com": "WhatsApp",
    "wikipedia.org": "Wikipedia",
    "x.com": "X",
    "yahoo.com": "Yahoo",
    "yandex.ru": "Yandex",
    "youtube.com": "YouTube",
}


def get_label(dimension: str, value: str) -> str:
    """Return the English name of a value; the value itself if it has none."""
    if dimension == "countries":
        return get_country_name(value) or "Unknown"
    if dimension == "languages":
        return load_language_names("en").get(value, "Unknown")
    if dimension == "rules":
        return "No rule" if value == NO_RULE else f"Rule {value}"
    if dimension == "referrers":
        return "Direct" if value == "direct" else get_site_name(value) or value
    names = {"devices": _DEVICES, "systems": _SYSTEMS}.get(dimension, {})
    return names.get(value, value)


def get_site_name(host: str) -> str | None:
    """Return the name of a well-known site by one of its hosts, or None."""
    labels = host.lower().split(".")
    for start in range(len(labels) - 1):
        if name := _SITES.get(".".join(labels[start:])):
            return name
    # It has a host in every country: google.de, google.co.uk.
    owner = labels[-3:-2] if labels[-2:-1] in (["co"], ["com"]) else labels[-2:-1]
    return "Google" if owner == ["google"] else None
