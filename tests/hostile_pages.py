"""Pages that make parsers slow: what each is made of, repeated to any size."""

SIZE = 512 * 1024


def _filled(unit: str, *, head: str = "", tail: str = "", size: int = SIZE) -> str:
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


ATTRIBUTES = "".join(f" a{number}" for number in range(70_000))
SHAPES: dict[str, str] = {
    "nested div": _filled("<div>", head="<html>"),
    "attributes of one meta": f"<meta{ATTRIBUTES}>"[:SIZE],
    "attributes with values": _filled(" x=y", head="<meta", tail=">"),
    "one attribute again": _filled(" content='a'", head="<meta name=description", tail=">"),
    "nested formatting": _filled("<b><i><font>"),
    "nested links": _filled("<a href=x>"),
    "adoption agency": _filled("<a><div></a>"),
    "misnested formatting": _filled("<b><p></b></p>"),
    "foster parenting": _filled("<table><a>"),
    "nested tables": _filled("<table><tr><td>"),
    "nested svg": _filled("<svg><g>"),
    "svg and html in turn": _filled("<svg><foreignObject>"),
    "nested math": _filled("<math><mi>"),
    "select": _filled("<select><option>"),
    "template": _filled("<template>"),
    "open comments": _filled("<!--"),
    "half comments": _filled("<!-- -- "),
    "declarations": _filled("<!"),
    "open quotes": _filled("<meta content='"),
    "open double quotes": _filled('<meta name="'),
    "open tags": _filled("<meta "),
    "open cdata": _filled("<![CDATA["),
    "open scripts": _filled("<script>"),
    "script ends": _filled("</script", head="<script>"),
    "open titles": _filled("<title>"),
    "open textareas": _filled("<textarea>"),
    "entities": _filled("&amp", head="<title>"),
    "endless entity": _filled("9", head="<title>&#", tail=";</title>"),
    "endless entity in an attribute": _filled(
        "9", head="<meta name=description content='&#", tail=";'>"
    ),
    "ampersands": _filled("&", head="<title>", tail="</title>"),
    "unknown entities": _filled("&CounterClockwiseContourIntegra", head="<title>", tail="</title>"),
    "NUL": _filled("\0"),
    "NUL in tags": _filled("<\0meta\0>"),
    "huge value": _filled("x", head="<meta name=description content='", tail="'>"),
    "huge name": _filled("x", head="<meta property='", tail="' content=y>"),
    "huge tag name": _filled("x", head="<", tail=">"),
    "blanks": _filled(" ", head="<meta", tail=">"),
    "slashes": _filled("/", head="<meta", tail=">"),
    "equals": _filled("=", head="<meta ", tail=">"),
    "signs": _filled("<"),
    "end tags": _filled("</b>"),
    "paragraph ends": _filled("</p>"),
    "headings": _filled("<h1><h2>"),
    "framesets": _filled("<frameset>"),
    "bases": _filled("<base href=//a>"),
    "metas": _filled("<meta property=og:title content=x>"),
    "image references": _filled("../", head="<meta property=og:image content='", tail="'>"),
}
