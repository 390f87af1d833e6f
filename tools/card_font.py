"""Turn the letters of static/inter.woff2 into blocks of sixteen steps, with the system's Chromium.

`lists/card_font.bin`.

python tools/card_font.py
"""

from __future__ import annotations

import base64
import json
import re
import sys
import zlib
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

WEB = Path(__file__).parents[1] / "src/refract/web/static"
OUT = Path(__file__).parents[1] / "src/refract/lists/card_font.bin"
FACES = {
    "large": {"px": 72, "weight": 680, "line": 84, "tracking": -1.8},
    "small": {"px": 32, "weight": 520, "line": 44, "tracking": -0.3},
}
MARK = "\ue000"
# Draws one sign on a canvas and reads its coverage back. A canvas of one colour, so that alpha
# alone says how much of a pixel is ink.
DRAW = """async ({font, mark, faces, signs}) => {
  const face = new FontFace("Card", `url(data:font/woff2;base64,${font})`, {weight: "400 720"});
  document.fonts.add(await face.load());
  const image = new Image();
  image.src = `data:image/svg+xml;base64,${mark}`;
  await image.decode();
  const found = {};
  for (const [name, {px, weight}] of Object.entries(faces)) {
    const side = px * 3, pen = px;
    const canvas = new OffscreenCanvas(side, side);
    const ink = canvas.getContext("2d", {willReadFrequently: true});
    found[name] = signs.map((sign) => {
      ink.clearRect(0, 0, side, side);
      ink.font = `${weight} ${px}px Card`;
      let advance = ink.measureText(sign).width;
      if (sign === "\\ue000") {
        const size = Math.round(px * 1.5);
        ink.drawImage(image, pen, pen * 2 - Math.round(size * 0.8), size, size);
        advance = size;
      } else ink.fillText(sign, pen, pen * 2);
      const data = ink.getImageData(0, 0, side, side).data;
      let [left, top, right, bottom] = [side, side, -1, -1];
      const opacity = (x, y) => data[4 * (y * side + x) + 3];
      for (let y = 0; y < side; y++) for (let x = 0; x < side; x++) if (opacity(x, y) > 8) {
        left = Math.min(left, x); right = Math.max(right, x);
        top = Math.min(top, y); bottom = Math.max(bottom, y);
      }
      const steps = [];
      for (let y = top; y <= bottom; y++)
        for (let x = left; x <= right; x++) steps.push(Math.round(opacity(x, y) / 17));
      const [width, height] = [Math.max(0, right - left + 1), Math.max(0, bottom - top + 1)];
      return {sign, advance, left: left - pen, top: top - pen * 2, width, height, steps};
    });
  }
  return found;
}"""


def signs() -> list[str]:
    """Every letter that the stylesheet promises the font to have, and our sign."""
    ranges = re.search(r"unicode-range:\s*([^;]+);", (WEB / "css/fonts.css").read_text())
    if ranges is None:
        sys.exit("fonts.css names no range of letters")
    found: list[str] = []
    for one in ranges[1].split(","):
        first, _, last = one.strip().removeprefix("U+").partition("-")
        found += [chr(code) for code in range(int(first, 16), int(last or first, 16) + 1)]
    return [*found, MARK]


def packed(found: dict[str, list[dict[str, Any]]]) -> bytes:
    """A line of JSON that says where each block lies, then the blocks."""
    head: dict[str, Any] = {}
    blocks = bytearray()
    for name, glyphs in found.items():
        placed = {}
        for one in glyphs:
            placed[one["sign"]] = [
                len(blocks),
                one["left"],
                one["top"],
                one["width"],
                one["height"],
                round(one["advance"], 2),
            ]
            blocks += bytes(one["steps"])
        head[name] = {
            "line": FACES[name]["line"],
            "tracking": FACES[name]["tracking"],
            "glyphs": placed,
        }
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + bytes(blocks)


def outline() -> str:
    """The icon in one colour and without its tile."""
    svg = (WEB / "icon.svg").read_text()
    return re.sub(r"<rect[^>]*/>", "", svg)


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            chromium_sandbox=False,
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page()
        asked = {
            "font": base64.b64encode((WEB / "inter.woff2").read_bytes()).decode(),
            "mark": base64.b64encode(outline().encode()).decode(),
            "faces": FACES,
            "signs": signs(),
        }
        found = page.evaluate(DRAW, asked)
        browser.close()
    OUT.write_bytes(zlib.compress(packed(found), 9))
    print(f"{len(signs())} letters in {len(FACES)} sizes: {OUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
