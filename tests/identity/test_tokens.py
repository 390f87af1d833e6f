"""S5: forged tokens are all refused with the same response; valid ones are accepted."""

import json
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from joserfc.jwk import ECKey, RSAKey

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.core.settings.model import Settings
from refract.identity.models import User, UserStatus
from refract.identity.oidc.accounts import user_from_bearer_token
from tests import make
from tests.client import client_of, on_sqlite
from tests.conftest import make_settings
from tests.identity.issuer import (
    AUDIENCE,
    CLIENT,
    ISSUER,
    b64,
    bearer,
    claims,
    ec_key,
    edwards_key,
    hs256,
    public,
    publish,
    raw,
    renamed,
    rsa_key,
    sign,
)

pytestmark = on_sqlite
CLERK = "https://clerk.test"
ISSUERS = {
    "work": Issuer(url=ISSUER, client_id=CLIENT, audiences=(AUDIENCE,)),
    "clerk": Issuer(kind="clerk", url=CLERK, client_id="clerk-client"),
    "zitadel": Issuer(
        kind="zitadel",
        url="https://zitadel.test",
        client_id="321@refract",
        audiences=("987654321098765432",),
    ),
}


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(tmp_path / "data", database_url=database, issuers=ISSUERS)


@pytest.fixture
async def rt(rt: Runtime) -> AsyncIterator[Runtime]:
    for issuer in ISSUERS.values():
        await publish(rt, issuer=issuer.url)
    yield rt
    await rt.close()


@pytest.fixture
async def client(app: WebNode) -> AsyncIterator[AsyncClient]:
    async with client_of(app) as asking:
        yield asking


async def _me(client: AsyncClient, token: str) -> tuple[int, dict[str, Any]]:
    response = await client.get("/api/v1/me", headers=bearer(token))
    return response.status_code, response.json()


# -- good ones


async def test_a_good_token_is_let_in_and_makes_the_account_once(
    client: AsyncClient, clock: ManualClock
) -> None:
    first = await _me(client, sign(claims(clock.now())))
    second = await _me(client, sign(claims(clock.now(), aud=["other", AUDIENCE])))

    assert first[0] == second[0] == 200
    assert first[1]["id"] == second[1]["id"]


@pytest.mark.parametrize("aud", [CLIENT, AUDIENCE])
async def test_elliptic_keys_and_both_audiences_are_fine(
    client: AsyncClient, clock: ManualClock, aud: str
) -> None:
    token = sign(claims(clock.now(), aud=aud), ec_key(), alg="ES256", kid="ec-1")

    assert (await _me(client, token))[0] == 200


ALGORITHMS = ("RS256", "RS512", "PS256", "ES256", "ES384", "Ed25519", "EdDSA")


async def _by(rt: Runtime, key: Any, token: str, algorithms: Any = ALGORITHMS) -> User | None:
    """Return the user of a token, given the published key and the allowed algorithms."""
    rt.settings = rt.settings.model_copy(
        update={"issuers": {"work": ISSUERS["work"].model_copy(update={"algorithms": algorithms})}}
    )
    await publish(rt, key)
    try:
        return await user_from_bearer_token(rt, token)
    finally:
        await rt.close()  # the next one reads the issuer's keys anew


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "ES256", "ES384", "Ed25519"])
async def test_every_algorithm_on_the_list_is_understood_and_none_that_is_not(
    rt: Runtime, clock: ManualClock, algorithm: str
) -> None:
    kind = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}[algorithm[:2]]
    makers: dict[str, Callable[[], Any]] = {
        "RSA": lambda: RSAKey.generate_key(2048, parameters={"kid": "one", "use": "sig"}),
        "EC": lambda: ECKey.generate_key(
            "P-384" if algorithm == "ES384" else "P-256", parameters={"kid": "one", "use": "sig"}
        ),
        "OKP": lambda: edwards_key("one"),
    }
    key = makers[kind]()
    token = sign(claims(clock.now()), key, alg=algorithm, kid="one")

    assert await _by(rt, key, token) is not None
    assert await _by(rt, key, token, [name for name in ALGORITHMS if name != algorithm]) is None
    assert await _by(rt, key, token[:-2] + ("AA" if not token.endswith("AA") else "BA")) is None


@pytest.mark.parametrize("published", [None, "EdDSA", "Ed25519"])
@pytest.mark.parametrize("named", ["EdDSA", "Ed25519"])
async def test_the_older_and_the_newer_name_of_ed25519_are_one(
    rt: Runtime, clock: ManualClock, named: str, published: str | None
) -> None:
    """EdDSA (RFC 8037) and Ed25519 (RFC 9864) name the same; keys and tokens may differ."""
    key = edwards_key("ed", alg=published)

    assert await _by(rt, key, renamed(claims(clock.now()), key, named)) is not None


@pytest.mark.parametrize(
    ("named", "curve", "published"),
    [
        ("EdDSA", "Ed448", None),
        ("EdDSA", "Ed448", "EdDSA"),
        ("Ed448", "Ed448", None),
        ("Ed25519", "Ed448", None),
        ("Ed448", "Ed25519", None),
        ("EdDSA", "Ed25519", "RS256"),
        ("eddsa", "Ed25519", None),
        ("ED25519", "Ed25519", None),
    ],
)
async def test_another_curve_or_another_spelling_is_refused(
    rt: Runtime, clock: ManualClock, named: str, curve: str, published: str | None
) -> None:
    key = edwards_key(f"{curve}-{published}", curve, published)

    assert await _by(rt, key, renamed(claims(clock.now()), key, named)) is None


async def test_a_key_for_agreeing_on_secrets_signs_nothing(rt: Runtime, clock: ManualClock) -> None:
    """X25519 keys have the same type and similar numbers, but can't sign."""
    signer = edwards_key("x")
    token = renamed(claims(clock.now()), signer, "EdDSA")
    disguised = {**signer.as_dict(private=False), "crv": "X25519"}

    class Published:
        def as_dict(self, **_: Any) -> dict[str, Any]:
            return disguised

    assert await _by(rt, Published(), token) is None


async def test_a_token_writes_without_proof_of_origin(
    client: AsyncClient, clock: ManualClock
) -> None:
    response = await client.post(
        "/api/v1/links",
        headers=bearer(sign(claims(clock.now()))) | {"Idempotency-Key": "x"},
        json={"destination": "https://example.com"},
    )

    assert response.status_code == 201


@pytest.mark.parametrize("shift", [-355, 59])
async def test_clocks_may_disagree_by_a_minute(
    client: AsyncClient, clock: ManualClock, shift: int
) -> None:
    at = int(clock.now().timestamp()) + shift

    assert (await _me(client, sign(claims(clock.now(), iat=at, nbf=at, exp=at + 300))))[0] == 200


async def test_the_tokens_of_clerk_are_understood(client: AsyncClient, clock: ManualClock) -> None:
    """A session token (no audience, `azp` is our origin) and an OAuth token (`client_id`)."""
    at = int(clock.now().timestamp())
    session = {
        "azp": "http://go.test", "exp": at + 60, "fva": [3, -1], "iat": at, "iss": CLERK,
        "nbf": at - 10, "sid": "sess_2x", "sts": "active",
        "sub": "user_2abcDEF", "v": 2,
    }  # fmt: skip
    oauth = {
        "client_id": "clerk-client", "exp": at + 86_400, "iat": at, "iss": CLERK, "jti": "oat_1",
        "nbf": at, "scope": "profile email",
        "sub": "user_2abcDEF",
    }  # fmt: skip

    first = await _me(client, sign(session, cat="cl_B7d4PD111AAA", typ="JWT"))
    second = await _me(client, sign(oauth))

    assert (first[0], second[0]) == (200, 200)
    assert first[1]["id"] == second[1]["id"]


@pytest.mark.parametrize(
    "wrong",
    [{"azp": "https://evil.test"}, {"azp": None}, {"azp": None, "client_id": "somebody-else"}],
)
async def test_a_token_of_clerk_for_somebody_else_is_refused(
    client: AsyncClient, clock: ManualClock, wrong: dict[str, Any]
) -> None:
    body = {"azp": "http://go.test", **wrong, "iss": CLERK, "aud": None}

    assert (await _me(client, sign(claims(clock.now(), **{"client_id": None, **body}), typ="JWT")))[
        0
    ] == 401


async def test_the_tokens_of_zitadel_are_understood(
    client: AsyncClient, clock: ManualClock
) -> None:
    at = int(clock.now().timestamp())
    body = {
        "iss": "https://zitadel.test", "sub": "312909075212304387",
        "aud": ["321@refract", "322@other", "987654321098765432"],
        "exp": at + 43_200, "iat": at, "nbf": at, "client_id": "321@refract", "jti": "V2_1-at_2",
        "urn:zitadel:iam:org:project:roles": {"user": {"1": "acme.zitadel.test"}},
        "urn:zitadel:iam:user:resourceowner:id": "1",
    }  # fmt: skip

    assert (await _me(client, sign(body, typ="JWT")))[0] == 200


@pytest.mark.parametrize(
    "mark", [{"scope": "api"}, {"scp": ["api"]}, {"cid": "x"}, {"typ": "Bearer"}]
)
async def test_a_plain_type_needs_a_mark_of_an_access_token(
    client: AsyncClient, clock: ManualClock, mark: dict[str, Any]
) -> None:
    """Auth0, Entra ID, Okta and Keycloak, none of which uses the type of RFC 9068 by default."""
    assert (await _me(client, sign(claims(clock.now(), client_id=None, **mark), typ="JWT")))[
        0
    ] == 200


# -- hostile ones


def _hs256_with_the_public_key(now: datetime) -> str:
    return hs256(claims(now), rsa_key().as_pem(private=False))


def _hs256_with_the_public_jwk(now: datetime) -> str:
    return hs256(claims(now), json.dumps(public(rsa_key())["keys"][0]).encode())


def _foreign_key(now: datetime, **header: Any) -> str:
    return sign(claims(now), rsa_key("stranger"), **header)


def _twice(now: datetime) -> bytes:
    return json.dumps(claims(now))[:-1].encode() + b', "sub": "root"}'


def _swapped(now: datetime) -> str:
    """The payload of one token under the signature of another."""
    mine, theirs = (
        sign(claims(now, sub="mallory")).split("."),
        sign(claims(now, sub="ada")).split("."),
    )
    return f"{mine[0]}.{theirs[1]}.{mine[2]}"


def _second_spelling(now: datetime) -> str:
    """The same signature bytes, written with other spare bits at the end."""
    head, body, signature = sign(claims(now)).split(".")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return f"{head}.{body}.{signature[:-1]}{alphabet[alphabet.index(signature[-1]) ^ 1]}"


def _at(now: datetime, seconds: float) -> int:
    return int(now.timestamp() + seconds)


HOSTILE: dict[str, Callable[[datetime], str]] = {
    "alg none, no signature": lambda now: (
        raw({"alg": "none"}, claims(now)).rpartition(".")[0] + "."
    ),
    "alg none, some signature": lambda now: raw({"alg": "none", "kid": "rsa-1"}, claims(now)),
    "alg None in capitals": lambda now: raw({"alg": "NONE", "kid": "rsa-1"}, claims(now)),
    "alg missing": lambda now: raw({"kid": "rsa-1", "typ": "at+jwt"}, claims(now)),
    "alg is a list": lambda now: raw({"alg": ["RS256"], "kid": "rsa-1"}, claims(now)),
    "HS256 keyed with the public PEM": _hs256_with_the_public_key,
    "HS256 keyed with the public JWK": _hs256_with_the_public_jwk,
    "HS256 keyed with nothing much": lambda now: hs256(claims(now), b"secret"),
    "alg not on the list": lambda now: raw({"alg": "RS512", "kid": "rsa-1"}, claims(now)),
    "alg of another key's family": lambda now: raw(
        {"alg": "ES256", "kid": "rsa-1"}, claims(now), b"0" * 64
    ),
    "signed by a stranger under our key's id": _foreign_key,
    "signed by a stranger, no key id": lambda now: _foreign_key(now, kid=None),
    "key id unknown": lambda now: _foreign_key(now, kid="stranger"),
    "key id is a path": lambda now: _foreign_key(now, kid="../../../../dev/null"),
    "key id is a query": lambda now: _foreign_key(now, kid="' UNION SELECT 'key"),
    "key id is a number": lambda now: raw({"alg": "RS256", "kid": 1}, claims(now)),
    "brings its own key (jwk)": lambda now: _foreign_key(
        now, jwk=public(rsa_key("stranger"))["keys"][0]
    ),
    "brings the address of its key (jku)": lambda now: _foreign_key(
        now, jku="https://evil.test/keys"
    ),
    "brings a certificate's address (x5u)": lambda now: _foreign_key(
        now, x5u="https://evil.test/cert"
    ),
    "brings a certificate (x5c)": lambda now: _foreign_key(now, x5c=["MIIB"]),
    "well signed, yet names a jku": lambda now: raw_signed(now, jku="https://evil.test/keys"),
    "demands a critical extension": lambda now: raw(
        {"alg": "RS256", "kid": "rsa-1", "crit": ["exp"], "exp": 1}, claims(now)
    ),
    "payload not encoded (b64 false)": lambda now: raw(
        {"alg": "RS256", "kid": "rsa-1", "b64": False}, claims(now)
    ),
    "compressed": lambda now: raw({"alg": "RS256", "kid": "rsa-1", "zip": "DEF"}, claims(now)),
    "encrypted, five parts": lambda now: f"{sign(claims(now))}.a.b",
    "wrong issuer": lambda now: sign(claims(now, iss="https://evil.test")),
    "issuer with a slash more": lambda now: sign(claims(now, iss=f"{ISSUER}/")),
    "issuer missing": lambda now: sign(claims(now, iss=None)),
    "issuer is a list": lambda now: sign(claims(now, iss=[ISSUER])),
    "one issuer's claim, another issuer's client": lambda now: sign(claims(now, iss=CLERK)),
    "wrong audience": lambda now: sign(claims(now, aud="https://elsewhere.test")),
    "audience missing": lambda now: sign(claims(now, aud=None)),
    "audience empty": lambda now: sign(claims(now, aud=[])),
    "audience is an object": lambda now: sign(claims(now, aud={AUDIENCE: 1})),
    "audience by prefix only": lambda now: sign(claims(now, aud=f"{AUDIENCE}.evil.test")),
    "made for another client (azp)": lambda now: sign(claims(now, azp="somebody-else")),
    "made for another client (client_id)": lambda now: sign(claims(now, client_id="somebody-else")),
    "expired": lambda now: sign(claims(now, exp=_at(now, -61))),
    "expiry missing": lambda now: sign(claims(now, exp=None)),
    "expiry is a text": lambda now: sign(claims(now, exp=str(_at(now, 300)))),
    "expiry is true": lambda now: sign(claims(now, exp=True)),
    "expiry beyond all time": lambda now: sign(claims(now, exp=1e300)),
    "expiry not a number": lambda now: sign(
        json.dumps(claims(now) | {"exp": float("nan")}).encode()
    ),
    "not valid yet": lambda now: sign(claims(now, nbf=_at(now, 61))),
    "issued in the future": lambda now: sign(claims(now, iat=_at(now, 3600), exp=_at(now, 7200))),
    "issue time missing": lambda now: sign(claims(now, iat=None)),
    "subject missing": lambda now: sign(claims(now, sub=None)),
    "subject empty": lambda now: sign(claims(now, sub="")),
    "subject is a number": lambda now: sign(claims(now, sub=7)),
    "subject too long": lambda now: sign(claims(now, sub="a" * 256)),
    "subject with a line break": lambda now: sign(claims(now, sub="ada\n")),
    "an ID token (nonce)": lambda now: sign(claims(now, nonce="n"), typ="JWT"),
    "an ID token (at_hash)": lambda now: sign(claims(now, at_hash="x"), typ="JWT"),
    "an ID token without nonce and at_hash": lambda now: sign(
        claims(now, client_id=None, jti=None, azp=CLIENT, aud=CLIENT), typ="JWT"
    ),
    "an ID token without a type": lambda now: sign(
        claims(now, client_id=None, jti=None, aud=CLIENT, auth_time=1), typ=None
    ),
    "an ID token by Keycloak's mark": lambda now: sign(claims(now, typ="ID"), typ="JWT"),
    "a refresh token by Keycloak's mark": lambda now: sign(claims(now, typ="Refresh"), typ="JWT"),
    "a logout token by type": lambda now: sign(claims(now), typ="logout+jwt"),
    "a logout token by its events": lambda now: sign(
        claims(now, events={"http://schemas.openid.net/event/backchannel-logout": {}})
    ),
    "type is an object": lambda now: raw({"alg": "RS256", "kid": "rsa-1", "typ": {}}, claims(now)),
    "a member twice": lambda now: sign(_twice(now)),
    "payload is a list": lambda _now: sign(b"[]"),
    "payload is not JSON": lambda _now: sign(b"hello"),
    "payload nested without end": lambda _now: sign(b'{"a":' * 3000 + b"1" + b"}" * 3000),
    "one payload, another signature": _swapped,
    "signature cut off": lambda now: sign(claims(now)).rpartition(".")[0] + ".AA",
    "signature in a second spelling": _second_spelling,
    "padding added": lambda now: sign(claims(now)) + "=",
    "white space inside": lambda now: sign(claims(now)).replace(".", ". ", 1),
    "huge": lambda now: sign(claims(now, more="x" * 50_000)),
    "ten megabytes": lambda _now: f"{b64(b'{}')}.{'A' * 10_000_000}.AA",
}


def raw_signed(now: datetime, **header: Any) -> str:
    """By the issuer's own key, so that only the header can be at fault."""
    return sign(claims(now), **header)


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_token_is_refused(rt: Runtime, clock: ManualClock, name: str) -> None:
    assert await user_from_bearer_token(rt, HOSTILE[name](clock.now())) is None
    assert await user_from_bearer_token(rt, sign(claims(clock.now()))) is not None, (
        "the harness itself must work"
    )


@pytest.mark.parametrize(
    "name", ["expired", "wrong audience", "alg none, no signature", "ten megabytes"]
)
async def test_whoever_sends_one_learns_nothing_from_the_answer(
    client: AsyncClient, clock: ManualClock, name: str
) -> None:
    status, told = await _me(client, HOSTILE[name](clock.now()))

    assert (status, told["code"], told["detail"]) == (
        401,
        "INVALID_CREDENTIALS",
        "Invalid or expired credentials. Sign in again, or use another API key.",
    )


@pytest.mark.filterwarnings("ignore:Key size should be:joserfc.errors.SecurityWarning")
async def test_a_key_that_is_too_short_is_not_used(rt: Runtime, clock: ManualClock) -> None:
    """Published, but too short to mean anything."""
    weak = rsa_key("weak", 1024)
    await publish(rt, weak, rsa_key())

    assert await user_from_bearer_token(rt, sign(claims(clock.now()), weak, kid="weak")) is None
    assert await user_from_bearer_token(rt, sign(claims(clock.now()))) is not None


# -- who stands behind


@pytest.mark.parametrize("status", [UserStatus.SUSPENDED, UserStatus.DELETED])
async def test_who_is_not_active_is_refused_with_the_next_request(
    rt: Runtime, client: AsyncClient, clock: ManualClock, status: UserStatus
) -> None:
    token = sign(claims(clock.now()))
    _, me = await _me(client, token)
    async with rt.db.write() as session:
        (await session.get_one(User, int(me["id"]))).status = status

    assert (await _me(client, token))[0] == 401


async def test_tokens_count_against_one_limit_for_each_person(
    rt: Runtime, clock: ManualClock
) -> None:
    rt.settings = rt.settings.model_copy(update={"key_requests_per_hour": 3})
    async with client_of(WebNode(rt)) as asking:
        statuses = [
            (
                await asking.get(
                    "/api/v1/me", headers=bearer(sign(claims(clock.now(), jti=str(number))))
                )
            ).status_code
            for number in range(4)
        ]
        other = await asking.get("/api/v1/me", headers=bearer(sign(claims(clock.now(), sub="bob"))))

    assert statuses == [200, 200, 200, 429]
    assert (other.status_code, other.headers["ratelimit-remaining"]) == (200, "2")


async def test_an_administrator_has_their_rights_by_token_too(
    rt: Runtime, client: AsyncClient, clock: ManualClock
) -> None:
    async with rt.db.write() as session:
        await make.person(session, rt, "root", issuer=ISSUER, role="admin")

    assert (
        await client.get(
            "/api/v1/admin/audit", headers=bearer(sign(claims(clock.now(), sub="root")))
        )
    ).status_code == 200
    assert (
        await client.get(
            "/api/v1/admin/audit", headers=bearer(sign(claims(clock.now(), sub="ada")))
        )
    ).status_code == 403


async def test_a_token_without_any_issuer_configured_is_just_a_wrong_key(
    rt: Runtime, clock: ManualClock
) -> None:
    rt.settings = rt.settings.model_copy(update={"issuers": {}})
    async with client_of(WebNode(rt)) as asking:
        assert (
            await asking.get("/api/v1/me", headers=bearer(sign(claims(clock.now()))))
        ).status_code == 401
