"""Write src/refract/core/unicode_scripts.py: which characters belong to which script, for hosts that look alike.

Python's standard library does not know the scripts of Unicode. `regex`, which extracting text from pages needs anyway, does; so the table
is made from it once and kept, and no request depends on it. `python -m tools.scripts` writes it again, for a newer Unicode.
"""

from pathlib import Path

import regex  # type: ignore[import-untyped]  # no stubs are locked

SCRIPTS = (
    "Arab", "Armn", "Beng", "Bopo", "Cyrl", "Deva", "Ethi", "Geor", "Grek", "Gujr", "Guru", "Hani", "Hang", "Hebr", "Hira", "Knda",
    "Kana", "Khmr", "Laoo", "Latn", "Mlym", "Mymr", "Orya", "Sinh", "Taml", "Telu", "Thaa", "Thai", "Tibt", "Zyyy", "Zinh",
)  # fmt: skip
"""The recommended scripts of UAX 31, and the two that go with every script: common and inherited."""

TARGET = Path(__file__).parents[1] / "src/refract/core/unicode_scripts.py"
WIDTH = 96
_HEAD = '''"""Scripts of characters, after Unicode (Script_Extensions). Written by `python -m tools.scripts`: do not edit.

Each script has its ranges in hexadecimal: the first character, and how many more follow it.
"""

# fmt: off
SCRIPT_RANGES: dict[str, str] = {
'''


def ranges_of(script: str) -> list[tuple[int, int]]:
    """Return first and last of every run of characters that may be of this script."""
    matches = regex.compile(rf"\p{{scx={script}}}").fullmatch
    runs: list[tuple[int, int]] = []
    for number in range(
        0x80, 0x32000
    ):  # ASCII needs no table, and beyond there is no letter of these scripts
        if not 0xD800 <= number < 0xE000 and matches(chr(number)):
            if runs and runs[-1][1] == number - 1:
                runs[-1] = (runs[-1][0], number)
            else:
                runs.append((number, number))
    return runs


def render() -> str:
    lines = [_HEAD]
    for script in SCRIPTS:
        words = [
            f"{first:x}" if first == last else f"{first:x}+{last - first:x}"
            for first, last in ranges_of(script)
        ]
        lines.append(f'    "{script}": (\n')
        line = ""
        for word in words:
            if len(line) + len(word) > WIDTH - 12:
                lines.append(f'        "{line}"\n')
                line = ""
            line += f"{word} "
        lines.append(f'        "{line.rstrip()}"\n    ),\n')
    return "".join([*lines, "}\n"])


if __name__ == "__main__":
    TARGET.write_text(render())
