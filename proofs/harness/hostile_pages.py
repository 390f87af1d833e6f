"""Pages that are small on the wire and dear to parse, by name."""

SIZE = 512 * 1024


def _filled(unit: str, size: int = SIZE) -> str:
    return unit * (size // len(unit))


PAGES: dict[str, str] = {
    "nested-div": "<html>" + _filled("<div>"),
    "nested-b": "<html>" + _filled("<b>"),
    "nested-a": "<html>" + _filled("<a href=x>"),
    "misnested": "<html>" + _filled("<b><p></b>"),
    "nested-table": "<html>" + _filled("<table><tr><td>"),
    "foster": "<html><table>" + _filled("<p>x"),
    "nested-svg": "<html><svg>" + _filled("<g>"),
    "nested-math": "<html><math>" + _filled("<mi>"),
    "nested-template": "<html>" + _filled("<template>"),
    "nested-select": "<html>" + _filled("<select><option>"),
    "nested-list": "<html>" + _filled("<ul><li>"),
    "attributes": "<html><head><meta " + " ".join(f"a{n}=1" for n in range(58_000)) + ">",
    "metas": "<html><head>" + _filled('<meta property="og:x" content="y">'),
    "titles": "<html><head>" + _filled("<title>x</title>"),
    "open-comment": "<html><head><!--" + "-" * SIZE,
    "open-quote": '<html><head><meta content="' + "x" * SIZE,
    "open-script": "<html><head><script>" + _filled("<!--<script>"),
    "entities": "<html><head><title>" + _filled("&amp;&#x1f600;&notanentity"),
    "closing": "<html>" + _filled("</div></p>"),
    "spaces": "<html><head><meta" + " " * SIZE,
    "nuls": "<html><head><title>" + "\x00" * SIZE,
    "one-letter-tags": "<html>" + _filled("<x>"),
}
