"""The HTML of saved pages, reduced to structured text. Pure."""

import nh3

_TAGS = {
    "a",
    "abbr",
    "b",
    "blockquote",
    "br",
    "caption",
    "cite",
    "code",
    "dd",
    "del",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "small",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
    "var",
}
_REMOVED_TAGS = {
    "script",
    "style",
    "template",
    "noscript",
    "title",
    "textarea",
    "svg",
    "math",
    "iframe",
    "object",
}


def sanitize_html(markup: str) -> str:
    """Return structured text in which nothing runs, loads, frames or styles.

    Links send no referrer.
    """
    return nh3.clean(
        markup,
        tags=_TAGS,
        clean_content_tags=_REMOVED_TAGS,
        attributes={
            "a": {"href"},
            "ol": {"start"},
            "td": {"colspan", "rowspan"},
            "th": {"colspan", "rowspan"},
        },
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
    )
