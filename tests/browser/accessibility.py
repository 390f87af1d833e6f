"""Judgement of a page in a browser: axe's grave findings, and what overflows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from axe_playwright_python.base import AXE_FILE_PATH
from playwright.async_api import Page

THEMES: list[Literal["light", "dark"]] = ["light", "dark"]
COLOUR_RULES = ("color-contrast", "link-in-text-block")
"""All that a theme can break: it changes nothing but colours (`test_templates` checks that)."""

_AXE = Path(AXE_FILE_PATH).read_text()
# A new width or theme has been drawn, and whatever moves or fades because of it has ended. If a
# starved browser draws nothing more at all, what is judged is laid out nevertheless.
SETTLED = """async () => {
  const draw = () => new Promise((done) => requestAnimationFrame(done));
  const settle = async () => {
    await draw();
    await draw();
    const moving = document.getAnimations();
    if (!moving.length) return;
    await Promise.allSettled(moving.map((one) => one.finished));
    await draw();
  };
  await Promise.race([settle(), new Promise((done) => setTimeout(done, 20_000))]);
}"""
# Elements that overflow the page, named so that a failure says where to look. The client's width
# is used, since the window's includes the scrollbar.
TOO_WIDE = """() => {
  const page = document.documentElement;
  if (page.scrollWidth <= page.clientWidth) return [];
  const out = [...document.querySelectorAll('body *')]
    .filter((e) => e.getBoundingClientRect().right > page.clientWidth + 0.5);
  const names = out.slice(0, 5).map((e) => e.tagName + '.' + e.getAttribute('class'));
  return [`${page.scrollWidth} > ${page.clientWidth}`, ...names];
}"""
# A rule gives all its findings its own impact, so those of no grave impact need not run.
_JUDGE = """async ([only, within]) => {
  const grave = ["serious", "critical"];
  const mild = axe._audit.rules.filter((rule) => rule.impact && !grave.includes(rule.impact));
  const chosen = only.length
    ? { runOnly: { type: "rule", values: only } }
    : { rules: Object.fromEntries(mild.map((rule) => [rule.id, { enabled: false }])) };
  const matches = within ? [...document.querySelectorAll(within)] : [];
  const parts = matches.filter((one) => one.checkVisibility());
  if (within && !parts.length) throw new Error(`nothing matches ${within}`);
  const found = await axe.run(within ? parts : document, { reporter: "no-passes", ...chosen });
  return found.violations
    .filter((one) => grave.includes(one.impact))
    .map((one) => [one.id, one.nodes.map((node) => node.html)]);
}"""
# The ratio of every text to the colours of its ancestors, for a page that axe judges at another
# width: axe looks at what lies behind each text on the screen, which takes a hundred times longer.
FAINT = """() => {
  const parse = (colour) => {
    const [red, green, blue, alpha = 1] = colour.match(/[\\d.]+/g).map(Number);
    const scale = colour.startsWith('color(') ? 255 : 1;
    return { rgb: [red, green, blue].map((value) => value * scale), alpha };
  };
  const paint = ({ rgb, alpha }, below) =>
    rgb.map((value, at) => value * alpha + below[at] * (1 - alpha));
  const luminance = (rgb) => {
    const linear = rgb.map((value) => value / 255)
      .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const behind = new Map([[null, { rgb: [255, 255, 255], opacity: 1, known: true }]]);
  const look = (element) => {
    if (!behind.has(element)) {
      const below = look(element.parentElement);
      const style = getComputedStyle(element);
      const background = parse(style.backgroundColor);
      behind.set(element, {
        rgb: paint(background, below.rgb),
        opacity: below.opacity * style.opacity,
        known: style.backgroundImage === 'none' && (below.known || background.alpha === 1),
      });
    }
    return behind.get(element);
  };
  const isRead = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return width > 1 && height > 1 && !element.closest('svg, :disabled, [aria-disabled=true]')
      && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const judged = new Set();
  const faint = [];
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (judged.has(element) || !/[\\p{L}\\p{N}]/u.test(texts.currentNode.data)) continue;
    judged.add(element);
    if (!isRead(element)) continue;
    const { rgb, opacity, known } = look(element);
    if (!known) continue;
    const style = getComputedStyle(element);
    const ink = parse(style.color);
    const shades = [paint({ ...ink, alpha: ink.alpha * opacity }, rgb), rgb].map(luminance);
    const ratio = (Math.max(...shades) + 0.05) / (Math.min(...shades) + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) {
      faint.push(ratio.toFixed(2) + ' ' + element.outerHTML.slice(0, 200));
    }
  }
  return faint;
}"""


async def find_violations(
    page: Page, only: Sequence[str] = (), within: str = ""
) -> list[tuple[str, list[str]]]:
    """Return the serious and critical findings of axe on a page that has settled.

    `only` names the rules; otherwise all of such an impact are applied. `within` selects the parts
    of the page to judge.
    """
    await page.evaluate(SETTLED)
    if not await page.evaluate("typeof axe === 'object'"):
        await page.evaluate(_AXE)
    return [(rule, nodes) for rule, nodes in await page.evaluate(_JUDGE, [list(only), within])]
