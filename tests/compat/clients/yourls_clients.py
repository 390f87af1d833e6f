"""The steps of the check of YOURLS, by the packages yourls and pyourls3."""

import sys
from typing import Any

import pyourls3
from steps import finish, found, step
from yourls import YOURLSClient

url, key, signature = sys.argv[1:]
API = f"{url}/yourls-api.php"


def show(link: Any) -> dict[str, Any]:
    names = ("shorturl", "url", "title", "date", "ip", "clicks", "keyword")
    return {name: getattr(link, name) for name in names}


def use_yourls(name: str, **proof: str) -> None:
    client = YOURLSClient(API, **proof)
    page = f"https://example.com/{name}"
    step(f"{name} shorten", lambda: show(client.shorten(page, keyword=name, title="A title")))
    step(f"{name} expand", lambda: client.expand(name))
    step(f"{name} url_stats", lambda: show(client.url_stats(f"{url}/{name}")))
    step(f"{name} stats", lambda: [show(link) for link in client.stats("top", 1)[0]])
    step(f"{name} totals", lambda: client.db_stats().total_links)
    step(f"{name} absent", lambda: client.expand("absent"))
    step(f"{name} taken", lambda: client.shorten("https://example.com/x", keyword=name))
    step(f"{name} known", lambda: client.shorten(page))


def use_pyourls3(**proof: str) -> None:
    client = pyourls3.Yourls(url, **proof)
    step("py shorten", lambda: client.shorten("https://example.com/py", keyword="py"))
    step("py expand", lambda: client.expand("py"))
    step("py stats", client.stats)
    step("py url_stats", lambda: client.url_stats("py"))


use_yourls("signed", signature=signature)
use_yourls("named", username="anybody", password=key)
step("bad_signature", lambda: YOURLSClient(API, signature="0" * 32).expand("signed"))
use_pyourls3(key=signature)
step("py with user", lambda: pyourls3.Yourls(url, user="u", passwd=key).expand("py"))
step("py bad key", lambda: pyourls3.Yourls(url, key="wrong"))
assert found
finish()
