"""Tables for invented traffic: countries, browsers, bots and referrers."""

from typing import Final, NamedTuple

_CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome"
_SAFARI = "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.{}"


class Country(NamedTuple):
    """A country. `hours` is its offset from UTC; `blocks` are its runs of sixteen /24 networks.

    `languages` are what most browsers there prefer, then what some and few do.
    """

    weight: int
    hours: float
    blocks: tuple[str, ...]
    languages: str


COUNTRIES: Final = (
    Country(300, -6, ("35.32.128", "156.1.224", "69.117.48", "2600:1700"), "en-US es-US zh-CN"),
    Country(150, 1, ("31.253.224", "89.0.160", "53.72.16", "2a02:8108"), "de-DE en-US tr-TR"),
    Country(110, 0, ("82.15.0", "5.80.96", "2001:8b0"), "en-GB en-US pl-PL"),
    Country(80, 1, ("84.205.144", "82.233.48", "2a01:cb00"), "fr-FR en-US ar"),
    Country(90, 5.5, ("157.45.112", "49.37.80", "2401:4900"), "en-IN hi-IN ta-IN"),
    Country(60, -3, ("187.38.0", "200.161.96", "2804:14c"), "pt-BR en-US es-419"),
    Country(60, 9, ("60.112.224", "126.15.240", "2400:4050"), "ja-JP en-US zh-CN"),
    Country(50, -5, ("142.119.176", "70.50.208"), "en-CA fr-CA zh-TW"),
    Country(40, 1, ("212.19.192", "145.58.224", "2a02:a210"), "nl-NL en-US de-DE"),
    Country(40, 1, ("87.219.96", "85.60.64"), "es-ES ca-ES en-GB"),
    Country(40, 1, ("151.17.240", "88.58.192"), "it-IT en-US de-DE"),
    Country(30, 1, ("46.76.96", "178.36.80"), "pl-PL en-US uk-UA"),
    Country(30, 10, ("124.171.176", "58.160.128"), "en-AU en-GB zh-CN"),
    Country(20, 1, ("90.135.208", "83.252.48"), "sv-SE en-US fi-FI"),
    Country(15, 1, ("178.191.208", "77.118.192"), "de-AT en-US hu-HU"),
    Country(15, 9, ("116.200.160", "183.126.128"), "ko-KR en-US ja-JP"),
    Country(12, -6, ("201.138.80", "189.214.48"), "es-MX en-US es-ES"),
    Country(10, 2, ("197.106.192", "105.176.64"), "en-ZA af-ZA zu-ZA"),
    Country(8, 1, ("102.94.16", "41.87.64"), "en-NG ha-NG fr-FR"),
)

AGENTS: Final = (
    (180, f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME}/{{}}.0.0.0 Safari/537.36"),
    (70, f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {_CHROME}/{{}}.0.0.0 Safari/537.36"),
    (30, f"Mozilla/5.0 (X11; Linux x86_64) {_CHROME}/{{}}.0.0.0 Safari/537.36"),
    (
        50,
        (
            f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME}/{{}}.0.0.0 Safari/537.36"
            " Edg/{}.0.0.0"
        ),
    ),
    (170, f"Mozilla/5.0 (Linux; Android 10; K) {_CHROME}/{{}}.0.0.0 Mobile Safari/537.36"),
    (15, f"Mozilla/5.0 (Linux; Android 14; SM-X200) {_CHROME}/{{}}.0.0.0 Safari/537.36"),
    (25, "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:{}.0) Gecko/20100101 Firefox/{}.0"),
    (25, "Mozilla/5.0 (X11; Linux x86_64; rv:{}.0) Gecko/20100101 Firefox/{}.0"),
    (60, f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {_SAFARI} Safari/605.1.15"),
    (
        190,
        (
            f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_{{}} like Mac OS X) {_SAFARI} Mobile/15E148"
            " Safari/604.1"
        ),
    ),
    (25, f"Mozilla/5.0 (iPad; CPU OS 17_{{}} like Mac OS X) {_SAFARI} Mobile/15E148 Safari/604.1"),
    (
        12,
        (
            "Mozilla/5.0 (Linux; Android 13; SM-G991B) AppleWebKit/537.36 (KHTML, like Gecko)"
            " SamsungBrowser/2{}.0 Mobile Safari/537.36"
        ),
    ),
    (8, ""),
)
"""Weight and pattern; `{}` is a version."""

BOTS: Final = (
    (30, "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"),
    (15, "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"),
    (10, "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)"),
    (10, "Mozilla/5.0 (compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)"),
    (8, "curl/8.5.0"),
    (8, "python-requests/2.32.3"),
)

PREVIEWS: Final = (
    (20, "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"),
    (15, "WhatsApp/2.23.20.0"),
    (15, "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)"),
    (10, "Twitterbot/1.0"),
    (10, "TelegramBot (like TwitterBot)"),
    (8, "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)"),
)

REFERRERS: Final = (
    (420, ""),
    (140, "https://www.google.com/"),
    (60, "https://t.co/"),
    (60, "https://www.linkedin.com/feed/"),
    (45, "https://l.facebook.com/"),
    (40, "https://news.ycombinator.com/item"),
    (40, "https://www.reddit.com/r/selfhosted/comments/1abcde/"),
    (30, "https://duckduckgo.com/"),
    (25, "https://github.com/example/project"),
    (25, "https://mail.google.com/"),
    (20, "https://www.youtube.com/"),
    (20, "https://www.bing.com/"),
    (15, "https://intranet.example.com/wiki/onboarding"),
    (10, "https://blog.example.org/2026/links-that-last"),
    (10, "https://mastodon.social/@ada"),
)

CAMPAIGNS: Final = (
    (700, b""),
    (90, b"utm_source=newsletter&utm_medium=email&utm_campaign=weekly"),
    (50, b"utm_source=newsletter&utm_medium=email&utm_campaign=launch"),
    (40, b"utm_source=linkedin&utm_medium=social&utm_campaign=launch&utm_content=post"),
    (30, b"utm_source=google&utm_medium=cpc&utm_campaign=brand&utm_term=short+links"),
    (20, b"utm_source=flyer&utm_medium=qr&utm_campaign=fair"),
)

BY_HOUR: Final = (
    5,
    3,
    2,
    2,
    2,
    4,
    10,
    22,
    42,
    58,
    62,
    60,
    55,
    58,
    60,
    58,
    54,
    50,
    46,
    44,
    42,
    36,
    24,
    12,
)
"""How busy people are at each hour of their own clocks."""
BY_WEEKDAY: Final = (100, 106, 108, 104, 92, 52, 48)
