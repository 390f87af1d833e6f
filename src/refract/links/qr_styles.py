"""How the QR code of a link looks. Pure.

A column of the link keeps its style as JSON, without what is as usual; so do the preferences of a
user, for all links that have no style of their own.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal

from refract.core.phrases import Phrase

QrCorrection = Literal["L", "M", "Q", "H"]
QrShape = Literal["square", "dots"]
MAX_MARGIN: Final = 10
MIN_CONTRAST: Final = 0.4
"""Difference of the luminance of background and code: grade C of ISO/IEC 15415 and better."""
QR_PREFERENCE: Final = "qr_style"
"""The key of the style in the preferences of a user."""


@dataclass(frozen=True, slots=True)
class QrStyle:
    """The looks of a QR code. The defaults are those of a code without a style."""

    color: str = "#000000"
    background: str = "#ffffff"
    margin: int = 4
    """Empty modules around the code. The standard requires four."""
    correction: QrCorrection = "M"
    shape: QrShape = "square"
    logo: bool = False
    """Whether the mark of Refract is in the middle, which needs the correction H."""

    @property
    def effective_correction(self) -> QrCorrection:
        return "H" if self.logo else self.correction

    def to_json(self) -> dict[str, Any]:
        """Return what differs from a code without a style."""
        usual = asdict(QrStyle())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


PLAIN_STYLE: Final = QrStyle()
_NAMES: Final = frozenset(field.name for field in fields(QrStyle))


def build_style(facts: Mapping[str, Any] | None) -> QrStyle | None:
    """Return a style from its JSON. Facts of newer versions are left out."""
    if facts is None:
        return None
    return QrStyle(**{name: value for name, value in facts.items() if name in _NAMES})


def parse_style(text: str | None) -> QrStyle | None:
    """Return the style in the column of a link."""
    return build_style(json.loads(text)) if text else None


def format_style(style: QrStyle) -> str:
    """Return the column of a style. A plain one has a text, too: it overrides a user's default."""
    return json.dumps(style.to_json(), separators=(",", ":"))


def find_contrast_problem(color: str, background: str) -> Phrase | None:
    """Return why scanners would fail on these colors, or None."""
    dark, light = _compute_luminance(color), _compute_luminance(background)
    if dark > light:
        return Phrase(
            "Many scanners can't read a light code on a dark background. Swap the colors."
        )
    if light - dark < MIN_CONTRAST:
        return Phrase(
            "Scanners can't tell the code from its background. Choose a darker color for the code"
            " or a lighter background."
        )
    return None


def _compute_luminance(color: str) -> float:
    """Return the relative luminance of `#rrggbb`, from 0 for black to 1 for white."""
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
