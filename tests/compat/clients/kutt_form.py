"""The steps of the check of Kutt, by the package of PyPI, which sends forms."""

import sys

from kutt import kutt
from steps import finish, step

url, key = sys.argv[1:]
links = f"{url}/api/v2/links"

made = step(
    "submit",
    lambda: kutt.submit(
        key, "https://example.com/form", customurl="Form", expire_in="8h", host_url=links
    ),
)
number = made["data"]["id"]
step("reuse", lambda: kutt.submit(key, "https://example.com/form", reuse=True, host_url=links))
step("list", lambda: kutt.links(key, limit=1, host_url=links))
step("stats", lambda: kutt.stats(key, number, host_url=links))
step(
    "update",
    lambda: kutt.update(key, number, "https://example.com/else", "Form", host_url=links),
)
step("taken", lambda: kutt.submit(key, "https://example.com/x", customurl="form", host_url=links))
step("password", lambda: kutt.submit(key, "https://example.com/x", password="p", host_url=links))
step("locked", lambda: kutt.submit(key, "https://example.com/x", password="sesame", host_url=links))
step("bad_key", lambda: kutt.links("nonsense", host_url=links))
step("delete", lambda: kutt.delete(key, number, host_url=links))
step("gone", lambda: kutt.stats(key, number, host_url=links))
finish()
