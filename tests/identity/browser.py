"""A minimal browser for sign-in tests: cookies per host, redirects across hosts, forms."""

import re
from urllib.parse import urljoin, urlsplit

import httpx
from httpx import ASGITransport, AsyncClient, Response

from refract.app import WebNode
from tests.waiting import PATIENCE

HOME = "http://go.test"


class Browser:
    """`app` is the Refract behind http://go.test; every other address is asked over the network."""

    def __init__(self, app: WebNode) -> None:
        self._here = AsyncClient(
            transport=ASGITransport(app),
            base_url=HOME,
            headers={"Accept": "text/html", "User-Agent": "Test/1.0"},
        )
        self._there = AsyncClient(
            headers={"Accept": "text/html"}, timeout=PATIENCE, trust_env=False
        )
        self.seen: list[str] = []

    @property
    def cookies(self) -> httpx.Cookies:
        return self._here.cookies

    async def close(self) -> None:
        await self._here.aclose()
        await self._there.aclose()

    async def get(self, url: str, *, stop_at: str | None = None) -> Response:
        """Follow redirects; return the last response before a URL that starts with `stop_at`."""
        return await self._follow(await self._ask("GET", url), stop_at)

    async def post(self, url: str, form: dict[str, str], *, stop_at: str | None = None) -> Response:
        return await self._follow(await self._ask("POST", url, data=form), stop_at)

    async def _ask(self, method: str, url: str, **more: object) -> Response:
        url = urljoin(HOME, url)
        self.seen.append(url)
        client = self._here if url.startswith(HOME) else self._there
        headers = {"Origin": HOME} if method == "POST" and client is self._here else {}
        return await client.request(method, url, headers=headers, **more)  # type: ignore[arg-type]

    async def _follow(self, response: Response, stop_at: str | None) -> Response:
        for _ in range(12):
            if not response.is_redirect:
                return response
            target = urljoin(str(response.url), response.headers["location"])
            if stop_at is not None and target.startswith(stop_at):
                return response
            response = await self._ask("GET", target)
        raise AssertionError(f"a circle of redirects: {self.seen[-4:]}")

    async def identify(
        self, response: Response, name: str, *, stop_at: str | None = None
    ) -> Response:
        """Sign in and consent at the provider, until it redirects home (or to `stop_at`)."""
        for _ in range(3):
            if response.is_redirect or str(response.url).startswith(HOME):
                return response
            action = re.search(r'action="([^"]+)"', response.text)
            prompt = re.search(r'name="prompt" value="([^"]+)"', response.text)
            assert action, response.text
            assert prompt, response.text
            form = {"prompt": prompt[1], "login": name, "password": "x"}
            response = await self.post(urljoin(str(response.url), action[1]), form, stop_at=stop_at)
        return response

    async def sign_in(self, name: str = "ada", provider: str = "work") -> Response:
        return await self.identify(await self.get(f"/auth/oidc/{provider}"), name)


def host_of(response: Response) -> str:
    return urlsplit(str(response.url)).netloc
