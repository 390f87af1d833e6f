"""A test issuer: valid and forged tokens, metadata, and a server that can misbehave."""

import asyncio
import base64
import hmac
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jws
from joserfc.jwk import ECKey, OKPKey, RSAKey

from refract.core.runtime import Runtime
from refract.identity.models import IssuerDocuments

ISSUER = "https://id.test"
CLIENT = "refract"
EVENT: dict[str, dict[str, str]] = {"http://schemas.openid.net/event/backchannel-logout": {}}
AUDIENCE = "http://go.test/api"
_REGISTRY = jws.JWSRegistry(
    algorithms=["RS256", "RS512", "PS256", "ES256", "ES384", "HS256", "Ed25519", "Ed448", "none"],
    strict_check_header=False,
)


@cache
def rsa_key(kid: str = "rsa-1", bits: int = 2048) -> RSAKey:
    return RSAKey.generate_key(bits, parameters={"kid": kid, "use": "sig", "alg": "RS256"})


@cache
def ec_key(kid: str = "ec-1") -> ECKey:
    return ECKey.generate_key("P-256", parameters={"kid": kid, "use": "sig", "alg": "ES256"})


@cache
def edwards_key(kid: str = "ed-1", curve: Any = "Ed25519", alg: str | None = None) -> OKPKey:
    return OKPKey.generate_key(
        curve, parameters={"kid": kid, "use": "sig", **({"alg": alg} if alg else {})}
    )


def public(*keys: Any) -> dict[str, Any]:
    return {"keys": [key.as_dict(private=False) for key in keys]}


def claims(now: datetime, **given: Any) -> dict[str, Any]:
    """Those of a good access token; a member given as None is left out."""
    at = int(now.timestamp())
    good = {
        "iss": ISSUER,
        "sub": "ada",
        "aud": AUDIENCE,
        "client_id": CLIENT,
        "iat": at,
        "exp": at + 300,
        "jti": "1",
    }
    return {name: value for name, value in {**good, **given}.items() if value is not None}


def sign(body: dict[str, Any] | bytes, key: Any = None, **header: Any) -> str:
    """A token by the issuer's own key, unless told otherwise."""
    key = key or rsa_key()
    head = {"alg": "RS256", "kid": "rsa-1", "typ": "at+jwt", **header}
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    return jws.serialize_compact(
        {name: value for name, value in head.items() if value is not None},
        payload,
        key,
        registry=_REGISTRY,
    )


def logout_token(now: datetime, **given: Any) -> str:
    """A good logout token; a member given as None is left out."""
    header = {"typ": "logout+jwt", **given.pop("header", {})}
    body = {"aud": CLIENT, "client_id": None, "events": EVENT, "jti": "1", "sid": "s-1", **given}
    return sign(claims(now, **body), **header)


def raw(header: dict[str, Any], body: dict[str, Any] | bytes, signature: bytes = b"x") -> str:
    """A token of any parts."""
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ".".join(b64(part) for part in (json.dumps(header).encode(), payload, signature))


def renamed(body: dict[str, Any], key: OKPKey, alg: str, **header: Any) -> str:
    """Return a token signed with an Edwards curve, under the algorithm name of the header."""
    text = raw({"alg": alg, "kid": key.kid, "typ": "at+jwt", **header}, body).rpartition(".")[0]
    signing: Any = key.private_key
    return f"{text}.{b64(signing.sign(text.encode()))}"


def b64(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def hs256(body: dict[str, Any], secret: bytes) -> str:
    """Return a token signed with a shared secret, such as a public key. Libraries refuse to."""
    text = raw({"alg": "HS256", "kid": "rsa-1", "typ": "at+jwt"}, body).rpartition(".")[0]
    return f"{text}.{b64(hmac.digest(secret, text.encode(), 'sha256'))}"


def discovery(issuer: str, **given: Any) -> dict[str, Any]:
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "jwks_uri": f"{issuer}/keys",
        "userinfo_endpoint": f"{issuer}/me",
        "end_session_endpoint": f"{issuer}/end",
        **given,
    }


async def publish(rt: Runtime, *keys: Any, issuer: str = ISSUER) -> None:
    """Store the issuer's metadata as if it had just been fetched, without a request."""
    async with rt.db.write() as session:
        known = await session.get(IssuerDocuments, issuer)
        if known is not None:
            await session.delete(known)
            await session.flush()
        documents = public(*(keys or (rsa_key(), ec_key())))
        session.add(
            IssuerDocuments(
                issuer=issuer,
                discovery=discovery(issuer),
                keys=documents,
                fetched_at=rt.clock.now(),
            )
        )


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class Provider:
    """A provider's endpoints. Every response can be overridden, every request is counted."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.url = ""
        self.now = now
        self.keys: list[Any] = [rsa_key()]
        self.asked: Counter[str] = Counter()
        self.nonce = ""
        self.id_token: Callable[[dict[str, Any]], str] = lambda body: sign(body, typ="JWT")
        self.profile: dict[str, Any] = {
            "sub": "ada",
            "email": "ada@example.com",
            "email_verified": True,
            "name": "Ada",
        }
        self.bent: dict[str, bytes] = {}
        self.last_form: dict[str, list[str]] = {}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = urlsplit(head.split(" ")[1]).path
        length = next(
            (
                int(line[16:])
                for line in head.lower().split("\r\n")
                if line.startswith("content-length: ")
            ),
            0,
        )
        form = parse_qs((await reader.readexactly(length)).decode())
        self.asked[path] += 1
        body = self.bent.get(path) or json.dumps(self._document(path, form)).encode()
        status = b"404 Not Found" if body == b"null" else b"200 OK"
        writer.write(
            b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
            % (status, len(body), body)
        )
        writer.close()

    def _document(self, path: str, form: dict[str, list[str]]) -> Any:
        if path == "/.well-known/openid-configuration":
            return discovery(self.url)
        if path == "/keys":
            return public(*self.keys)
        if path == "/me":
            return self.profile
        if path == "/token":
            self.last_form = form
            body = claims(self.now(), iss=self.url, aud=CLIENT, client_id=None, nonce=self.nonce)
            return {
                "access_token": "opaque",
                "token_type": "Bearer",
                "id_token": self.id_token(body),
            }
        return None


@asynccontextmanager
async def provider_at_work(now: Callable[[], datetime]) -> AsyncIterator[Provider]:
    provider = Provider(now)
    server = await asyncio.start_server(provider.answer, "127.0.0.1", 0)
    provider.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield provider
    finally:
        server.close()
