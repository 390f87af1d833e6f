"""`make screens`: a photograph of every screen, on a phone and on a desk, by day and by night, and one sheet with all of them.

The screens are the templates with the sample data of the browser tests. Files go to `screens/`, which git ignores.
"""

import argparse
import html
import os
import threading
import time
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, sync_playwright

from tests.browser.gallery import gallery
from tests.browser.samples import PAGES

OUT = Path("screens")
SIZES = {"phone": (320, 640), "desk": (1280, 800)}
THEMES = ("light", "dark")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"]


def photograph(browser: Browser, url: str, names: list[str]) -> list[Path]:
    """One picture for each screen, size and theme."""
    made = []
    for size, (width, height) in SIZES.items():
        for theme in THEMES:
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark" if theme == "dark" else "light")
            page = context.new_page()
            for name in names:
                page.goto(f"{url}/sample/{name}", wait_until="networkidle")
                made.append(OUT / f"{name}-{size}-{theme}.png")
                page.screenshot(path=made[-1])
            context.close()
    return made


def sheet(browser: Browser, pictures: list[Path]) -> Path:
    """All pictures on one page."""
    figures = "".join(
        f'<figure style="margin:0"><img src="{one.name}" style="height:220px;border:1px solid #999"><figcaption>{html.escape(one.stem)}'
        "</figcaption></figure>"
        for one in sorted(pictures)
    )
    index = OUT / "index.html"
    index.write_text(f'<body style="font:12px sans-serif;display:flex;flex-wrap:wrap;gap:12px;margin:12px">{figures}')
    page = browser.new_page(viewport={"width": 1800, "height": 1000})
    page.goto(index.absolute().as_uri())
    page.screenshot(path=OUT / "sheet.png", full_page=True)
    page.close()
    return OUT / "sheet.png"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make screens", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="which screens; left out: all")
    chosen = parser.parse_args().names or list(PAGES)
    OUT.mkdir(exist_ok=True)
    server = uvicorn.Server(uvicorn.Config(gallery(), host="127.0.0.1", port=0, log_level="warning"))
    serving = threading.Thread(target=server.run, daemon=True)
    serving.start()
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("REFRACT_TEST_CHROMIUM", "/usr/bin/chromium"), chromium_sandbox=False, args=ARGUMENTS
        )
        pictures = photograph(browser, f"http://127.0.0.1:{port}", chosen)
        print(f"{len(pictures)} pictures of {len(chosen)} screens; all of them on {sheet(browser, pictures)}")
        browser.close()
    server.should_exit = True
    serving.join(10)


if __name__ == "__main__":
    main()
