"""What `REFRACT_ENVIRONMENT=production` refuses."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from refract.core.address import is_loopback

if TYPE_CHECKING:
    from refract.core.settings import Settings


def find_production_problem(settings: "Settings") -> str | None:
    """Say what REFRACT_ENVIRONMENT=production refuses, with the remedy; None if there is nothing."""
    if settings.base_url is None:
        return "REFRACT_ENVIRONMENT=production needs REFRACT_BASE_URL, the public address, such as https://go.example.com"
    host = urlsplit(settings.base_url).hostname or ""
    if not settings.https and not is_loopback(host):
        return (
            "REFRACT_ENVIRONMENT=production needs a REFRACT_BASE_URL with https://, or sessions and keys can be read on the way. "
            "Put a front with TLS before it, or set REFRACT_ENVIRONMENT=development in a private network"
        )
    if everybody := [str(network) for network in settings.trusted_proxies if network.prefixlen == 0]:
        return f"REFRACT_TRUSTED_PROXIES holds {everybody[0]}, so anybody could claim any address. Name the networks of your proxies alone"
    return None
