"""Draw the world's outline anew from an unpacked `world-atlas` npm package, one path per country.

    cd node_modules
    python …/world_map.py world-atlas/countries-110m.json i18n-iso-countries/codes.json

The file is drawn once, in the Equal Earth projection, so that a page needs neither a projection nor
a script: it names a country by its ISO code (`<use href="…/world.svg#DE">`), or all of them
(`#land`), and gives them a colour.
"""

from __future__ import annotations

import json
import math
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "src/refract/web/static/world.svg"
WIDTH = 1600
ANTARCTICA = "AQ"
_A = (1.340264, -0.081106, 0.000893, 0.003796)
Ring = list[tuple[float, float]]


def equal_earth(longitude: float, latitude: float) -> tuple[float, float]:
    """Šavrič, Patterson and Jenny, 2018."""
    theta = math.asin(math.sqrt(3) / 2 * math.sin(math.radians(latitude)))
    square, sixth = theta**2, theta**6
    slope = 9 * _A[3] * theta**8 + 7 * _A[2] * sixth + 3 * _A[1] * square + _A[0]
    x = 2 * math.sqrt(3) * math.radians(longitude) * math.cos(theta) / (3 * slope)
    return x, theta * (_A[3] * theta**8 + _A[2] * sixth + _A[1] * square + _A[0])


def arcs_of(topology: dict[str, Any]) -> list[Ring]:
    """The shared lines of the file, decoded from their steps."""
    (scale_x, scale_y), (left, bottom) = (
        topology["transform"]["scale"],
        topology["transform"]["translate"],
    )
    arcs = []
    for steps in topology["arcs"]:
        x = y = 0
        line: Ring = []
        for step in steps:
            x, y = x + step[0], y + step[1]
            line.append((x * scale_x + left, y * scale_y + bottom))
        arcs.append(line)
    return arcs


def ring_of(numbers: list[int], arcs: list[Ring]) -> Ring:
    """Lines put end to end; a negative number is a line walked backwards."""
    ring: Ring = []
    for number in numbers:
        line = arcs[number] if number >= 0 else arcs[~number][::-1]
        ring += line[1:] if ring else line
    reach = max(longitude for longitude, _ in ring) - min(longitude for longitude, _ in ring)
    if reach > 180:  # across the date line: drawn beyond the right edge and cut off there
        return [
            (longitude + 360 if longitude < 0 else longitude, latitude)
            for longitude, latitude in ring
        ]
    return ring


def path_of(rings: list[Ring], factor: float, top: float) -> str:
    """Whole numbers, each point as a step from the one before: a third of the size of decimals."""
    drawn = []
    for ring in rings:
        points: list[tuple[int, int]] = []
        for longitude, latitude in ring:
            x, y = equal_earth(longitude, latitude)
            point = (round(WIDTH / 2 + x * factor), round((top - y) * factor))
            if not points or points[-1] != point:
                points.append(point)
        if len(points) > 3:
            steps = [f"{x - left} {y - above}" for (left, above), (x, y) in pairwise(points[:-1])]
            drawn.append(f"M{points[0][0]} {points[0][1]}l{' '.join(steps).replace(' -', '-')}z")
    return "".join(drawn)


def main(atlas: Path, codes: Path) -> None:
    topology = json.loads(atlas.read_text())
    iso = {number: two for two, _, number, *_ in json.loads(codes.read_text())}
    arcs = arcs_of(topology)
    factor = WIDTH / (2 * equal_earth(180, 0)[0])
    top, bottom = equal_earth(0, 84)[1], equal_earth(0, -57)[1]
    paths = []
    for shape in topology["objects"]["countries"]["geometries"]:
        code = iso.get(shape.get("id", ""))
        if code == ANTARCTICA:
            continue
        polygons = [shape["arcs"]] if shape["type"] == "Polygon" else shape["arcs"]
        drawn = path_of(
            [ring_of(ring, arcs) for polygon in polygons for ring in polygon], factor, top
        )
        paths.append(
            "<path"
            f' id="{code or "x-" + shape["properties"]["name"].replace(" ", "-").replace(".", "")}"'
            f' d="{drawn}"/>'
        )
    height = round((top - bottom) * factor)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">'
    OUT.write_text("\n".join([head, '<g id="land">', *sorted(paths), "</g></svg>", ""]))
    sys.stdout.write(f"{len(paths)} countries, {WIDTH} by {height}, {OUT.stat().st_size} bytes\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
