"""Draw the icon's PNG and ICO forms from static/icon.svg, with the system's Chromium.

python tools/favicons.py
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

STATIC = Path(__file__).parents[1] / "src/refract/web/static"
CORNERS = 'rx="14" '


def draw(page: Page, svg: str, size: int) -> bytes:
    page.set_viewport_size({"width": size, "height": size})
    page.set_content(
        f"<style>body{{margin:0}}svg{{display:block;width:{size}px;height:{size}px}}</style>{svg}"
    )
    return page.screenshot(omit_background=True)


def ico(png: bytes, size: int) -> bytes:
    """An ICO file is a directory in front of a PNG."""
    return (
        struct.pack("<HHH", 0, 1, 1)
        + struct.pack("<BBBBHHII", size, size, 0, 0, 1, 32, len(png), 22)
        + png
    )


def main() -> None:
    svg = (STATIC / "icon.svg").read_text()
    square = svg.replace(CORNERS, "")
    # Phones cut a maskable icon to their own shape: the drawing keeps to the inner four fifths.
    maskable = square.replace("<g ", '<g transform="translate(9.6 9.6) scale(.7)" ')
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            chromium_sandbox=False,
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page()
        files = {
            "favicon.ico": ico(draw(page, svg, 32), 32),
            "icon-180.png": draw(page, square, 180),
            "icon-192.png": draw(page, svg, 192),
            "icon-512.png": draw(page, svg, 512),
            "icon-maskable-512.png": draw(page, maskable, 512),
        }
        browser.close()
    for name, content in files.items():
        (STATIC / name).write_bytes(content)
        sys.stdout.write(f"{name}: {len(content)} bytes\n")


if __name__ == "__main__":
    main()
