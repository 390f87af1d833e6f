"""Draw the icon sprite anew from an unpacked `lucide-static` npm package.

    python tools/icon_sprite.py node_modules/lucide-static

To add an icon: write its lucide name into ICONS, run this, commit both. Templates use `{{
icon("name") }}`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SPRITE = Path(__file__).parents[1] / "src/refract/web/static/icons.svg"

ICONS = [
    "activity",
    "archive",
    "arrow-down",
    "arrow-left",
    "arrow-right",
    "arrow-up",
    "arrow-up-right",
    "ban",
    "book-open",
    "bookmark",
    "bookmark-plus",
    "bot",
    "calendar",
    "chart-column",
    "check",
    "chevron-down",
    "chevron-left",
    "chevron-right",
    "circle-alert",
    "circle-check",
    "circle-pause",
    "circle-x",
    "clipboard-paste",
    "clock",
    "clock-alert",
    "compass",
    "copy",
    "corner-down-left",
    "download",
    "ellipsis",
    "external-link",
    "eye",
    "file-text",
    "funnel",
    "gauge",
    "globe",
    "grip-vertical",
    "heart-pulse",
    "history",
    "house",
    "inbox",
    "info",
    "key-round",
    "keyboard",
    "laptop",
    "layers",
    "library",
    "link",
    "list",
    "list-checks",
    "list-ordered",
    "list-plus",
    "lock",
    "log-in",
    "log-out",
    "mail",
    "map-pin",
    "merge",
    "monitor",
    "moon",
    "mouse-pointer-click",
    "palette",
    "panel-right",
    "pencil",
    "plus",
    "qr-code",
    "refresh-cw",
    "repeat",
    "rotate-ccw",
    "rss",
    "search",
    "server",
    "settings",
    "share-2",
    "shield",
    "smartphone",
    "sparkles",
    "square-pen",
    "star",
    "sun",
    "tag",
    "terminal",
    "trash-2",
    "triangle-alert",
    "undo-2",
    "user-plus",
    "user-round",
    "users-round",
    "x",
    "zap",
]

# Our own mark: one beam in, a prism, three beams out. Everything else is lucide's.
MARK = (
    '<symbol id="refract" viewBox="0 0 24 24"><path d="M11 4.2 3.6 18.4h14.8z"/>'
    '<path d="M1 14.4l5.2-1.2"/><path d="M15 11.9l7.6-2.6"/>'
    '<path d="M15.6 13.1l7.4.1" opacity=".75"/>'
    '<path d="M16.2 14.3l6.4 2.9" opacity=".5"/></symbol>'
)

DRAWING = re.compile(r"<svg[^>]*>(.*)</svg>", re.DOTALL)


def symbol(package: Path, name: str) -> str:
    """One icon as a symbol; stroke and fill come from the stylesheet."""
    match = DRAWING.search((package / "icons" / f"{name}.svg").read_text())
    if match is None:
        raise SystemExit(f"{name}.svg holds no drawing")
    body = re.sub(r"\s*\n\s*", "", match.group(1)).replace(" />", "/>")
    return f'<symbol id="{name}" viewBox="0 0 24 24">{body}</symbol>'


def main(package: Path) -> None:
    """Write the sprite, one symbol a line so that a change shows in a diff."""
    symbols = [MARK, *(symbol(package, name) for name in sorted(ICONS))]
    SPRITE.write_text(
        "\n".join(['<svg xmlns="http://www.w3.org/2000/svg">', *symbols, "</svg>", ""])
    )
    sys.stdout.write(f"{len(symbols)} icons, {SPRITE.stat().st_size} bytes\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
