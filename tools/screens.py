"""`make screens`: a picture of every screen by size, theme and language, and a sheet of them.

The screens are the templates with the sample data of the browser tests. Files go to `screens/`,
which git ignores; the sheet goes to `docs/screens/`, beside three pictures of a server that
`refract demo` has filled (`--demo`), which the README shows.
"""

import argparse
import html
import os
import subprocess
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.browser.gallery import gallery
from tests.browser.samples import PAGES
from tests.serving import refract, serving
from tools import packages
from tools.servers import free_port

OUT = Path("screens")
DOCS = Path("docs/screens")
NAME = "go.example.com"
BEST = (
    ("home", "/", "light"),
    ("link", "/app/links?q=roadmap", "light"),
    ("review", "/app/review", "dark"),
)
SIZES = {"phone": (390, 844), "desk": (1280, 800)}
THEMES = ("light", "dark")
LANGUAGES = ("en", "de", "zh-Hans")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
]


def photograph(browser: Browser, url: str, names: list[str], language: str) -> list[Path]:
    """Take a picture of each screen in every size and theme; return the files."""
    made = []
    for size, (width, height) in SIZES.items():
        for theme in THEMES:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if theme == "dark" else "light",
                locale=language,
            )
            page = context.new_page()
            for name in names:
                page.goto(f"{url}/sample/{name}", wait_until="networkidle")
                made.append(OUT / f"{name}-{size}-{theme}-{language}.png")
                page.screenshot(path=made[-1])
            context.close()
    return made


def sheet(browser: Browser, pictures: list[Path], language: str) -> Path:
    """Put all pictures of a language on one page; return the file."""
    figures = "".join(
        f'<figure style="margin:0"><img src="{picture.name}" style="height:150px;border:1px solid'
        f' #ccc"><figcaption>{html.escape(picture.stem)}</figcaption></figure>'
        for picture in sorted(pictures)
    )
    index = OUT / "index.html"
    index.write_text(
        '<body style="font:12px'
        f' sans-serif;display:flex;flex-wrap:wrap;gap:12px;margin:12px">{figures}'
    )
    page = browser.new_page(viewport={"width": 1800, "height": 1000})
    page.goto(index.absolute().as_uri())
    DOCS.mkdir(parents=True, exist_ok=True)
    # English is for the documentation, the others are for looking at them.
    where = DOCS / "sheet.jpg" if language == LANGUAGES[0] else OUT / f"sheet-{language}.jpg"
    page.screenshot(path=where, full_page=True, type="jpeg", quality=55, timeout=300_000)
    page.close()
    return where


def lived_in(directory: Path) -> None:
    """The three screens that say most, on a server with a quarter's work in it and a name of its
    own.
    """
    data = directory / "data"
    refract("demo", "--data-dir", str(data))
    port = free_port()
    with (
        serving(data, port=port, REFRACT_BASE_URL=f"http://{NAME}") as server,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright, f"--host-resolver-rules=MAP {NAME}:80 127.0.0.1:{server.port}")
        context = browser.new_context(
            viewport={"width": 1280, "height": 800}, device_scale_factor=1
        )
        page = context.new_page()
        link = refract(
            "signin-link", "--data-dir", str(data), REFRACT_BASE_URL=f"http://{NAME}"
        ).stdout.strip()
        page.goto(link)
        page.get_by_role("button", name="Sign in").click()
        for name, path, theme in BEST:
            page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            page.goto(f"http://{NAME}{path}", wait_until="load")
            if name == "link":
                page.locator("[data-row-open]").first.click()
            page.wait_for_timeout(1_500)
            page.screenshot(path=DOCS / f"{name}.png")
        browser.close()


def install_chinese_font() -> None:
    """Install a font with Chinese characters, if none is there and this machine allows it."""
    found = subprocess.run(["fc-list", ":lang=zh"], capture_output=True, check=False).stdout
    if not found and not (packages.may_install() and packages.apt_install(["fonts-noto-cjk"])):
        print("No font has Chinese characters: install fonts-noto-cjk to see them.")


def launch(playwright: Playwright, *more: str) -> Browser:
    return playwright.chromium.launch(
        executable_path=os.environ.get("REFRACT_TEST_CHROMIUM", "/usr/bin/chromium"),
        chromium_sandbox=False,
        args=[*ARGUMENTS, *more],
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="make screens", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="which screens; left out: all")
    parser.add_argument(
        "--demo", action="store_true", help="photograph a server with the demo's data instead"
    )
    parser.add_argument(
        "--languages", nargs="+", choices=LANGUAGES, default=LANGUAGES, help="left out: all"
    )
    options = parser.parse_args()
    chosen = options.names or list(PAGES)
    if options.demo:
        DOCS.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory() as directory:
            lived_in(Path(directory))
        return
    install_chinese_font()
    OUT.mkdir(exist_ok=True)
    server = uvicorn.Server(
        uvicorn.Config(gallery(), host="127.0.0.1", port=0, log_level="warning")
    )
    serving = threading.Thread(target=server.run, daemon=True)
    serving.start()
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for language in options.languages:
            pictures = photograph(browser, f"http://127.0.0.1:{port}", chosen, language)
            all_of_them = sheet(browser, pictures, language)
            print(f"{len(pictures)} pictures of {len(chosen)} screens on {all_of_them}")
        browser.close()
    server.should_exit = True
    serving.join(10)


if __name__ == "__main__":
    main()
