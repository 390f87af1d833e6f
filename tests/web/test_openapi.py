"""R8: the OpenAPI document is complete, and the program keeps to it."""

from typing import Any

import pytest
from httpx import AsyncClient

from proofs.openapi import ADMIN, READER, STRANGER, USER, Exploration, explore_in_process
from refract.app import WebNode
from refract.core.errors import KINDS, VersionMismatch
from refract.core.runtime import Runtime
from refract.web.openapi import IDEMPOTENCY_KEY, METHODS
from tests import make
from tests.access.identities import populate
from tests.access.objects import parameters_of, real_path
from tests.client import by_key, on_sqlite
from tests.documented import documented_errors, read_document

SEED = 20260601
EXAMPLES = 3
"""Random requests for each operation. `make proof openapi` sends many more."""


def _operations(app: WebNode) -> dict[str, dict[str, Any]]:
    paths = read_document(app)["paths"]
    return {
        f"{method.upper()} {path}": paths[path][method]
        for path in paths
        for method in paths[path]
        if method in METHODS
    }


@pytest.mark.parametrize(
    ("identity", "phases", "paths"),
    [
        (STRANGER, ("examples", "fuzzing"), ""),
        (USER, ("examples", "coverage"), ""),
        (USER, ("fuzzing", "stateful"), ""),
        (READER, ("examples", "fuzzing"), ""),
        (ADMIN, ("examples", "coverage", "fuzzing"), "/admin/"),
    ],
)
def test_no_request_gets_an_answer_that_the_document_does_not_describe(
    identity: str, phases: tuple[str, ...], paths: str
) -> None:
    """The short size of `make proof openapi`, without a server.

    An administrator explores only what others cannot use.
    """
    finding = explore_in_process(identity, Exploration(EXAMPLES, SEED, phases, paths))

    assert finding.held, f"seed {SEED}, {finding}\n{finding.told}"


@on_sqlite
async def test_every_operation_is_described(app: WebNode) -> None:
    tags = {tag["name"] for tag in read_document(app)["tags"]}
    missing = []
    for name, operation in _operations(app).items():
        assert operation["summary"], f"{name} needs a docstring: its first sentence is the summary"
        assert operation["summary"][0].isupper(), name
        assert set(operation["tags"]) <= tags, (
            f"{name} has a tag without a line in TAGS of refract.app"
        )
        unsaid = [
            one
            for one in operation.get("parameters", ())
            if not one.get("description") and one["in"] != "path"
        ]
        missing += [f"{name}: {parameter['name']}" for parameter in unsaid]
    assert not missing, f"parameters without a description: {missing}"


@on_sqlite
async def test_operation_ids_are_unique_words(app: WebNode) -> None:
    ids = [operation["operationId"] for operation in _operations(app).values()]

    assert len(ids) == len(set(ids)), "two endpoints have functions of the same name"
    assert all(one.isidentifier() for one in ids)


ANSWERS_OF_THEIR_OWN = {("GET /ready", "503"), ("GET /api/v1/domains/tls", "404")}
"""A report, and a status that a reverse proxy reads: nothing else is told about domains."""


@on_sqlite
async def test_every_refusal_is_a_problem_with_its_codes(app: WebNode) -> None:
    document = read_document(app)
    assert "HTTPValidationError" not in document["components"]["schemas"]
    for name, operation in _operations(app).items():
        for status, response in operation["responses"].items():
            if status >= "400" and (name, status) not in ANSWERS_OF_THEIR_OWN:
                content = response["content"]
                assert list(content) == ["application/problem+json"], f"{name} {status}"
                assert content["application/problem+json"]["examples"], f"{name} {status}"
                for code, example in content["application/problem+json"]["examples"].items():
                    assert example == {"$ref": f"#/components/examples/{code}"}
                    assert document["components"]["examples"][code]["value"]["status"] == int(
                        status
                    )
                assert content["application/problem+json"]["schema"] == {
                    "$ref": "#/components/schemas/Problem"
                }


@on_sqlite
async def test_what_asks_for_a_scope_says_so_and_how_to_sign_in(app: WebNode) -> None:
    operations = _operations(app)

    assert operations["POST /api/v1/keys"]["security"][0] == {"api_key": ["account"]}
    assert operations["GET /api/v1/admin/audit"]["security"][0] == {"api_key": ["admin"]}
    assert "security" not in operations["GET /health"]
    for name, operation in operations.items():
        if operation.get("security"):
            assert {"401", "429", "503"} <= set(operation["responses"]), name


@on_sqlite
async def test_an_idempotency_key_is_described_where_it_works(app: WebNode) -> None:
    """A POST that changes nothing has nothing to remember."""
    operations = _operations(app)
    described = {
        name
        for name, operation in operations.items()
        if IDEMPOTENCY_KEY in operation.get("parameters", ())
    }

    assert described == {name for name in operations if name.startswith("POST ")} - {
        "POST /api/v1/resolve"
    }
    assert described == {
        name
        for name, codes in documented_errors(app).operations.items()
        if "IDEMPOTENCY_KEY_REUSED" in codes
    }


@on_sqlite
async def test_a_proof_of_origin_is_asked_of_changes_alone(app: WebNode) -> None:
    listed = {
        name for name, codes in documented_errors(app).operations.items() if "CSRF_FAILED" in codes
    }

    assert listed == {name for name in _operations(app) if not name.startswith("GET ")}


@on_sqlite
async def test_no_operation_lists_an_error_that_is_never_sent(app: WebNode) -> None:
    """Kinds of errors are abstract: what is sent is one of their subclasses."""
    kinds = {kind.code for kind in KINDS if kind is not VersionMismatch}

    for name, codes in documented_errors(app).operations.items():
        assert not kinds & set(codes), name


@on_sqlite
async def test_every_example_of_a_body_is_accepted(
    app: WebNode, rt: Runtime, client: AsyncClient
) -> None:
    world = await populate(rt)
    async with rt.db.write() as session:
        headers = by_key(await make.key(session, rt, world.admin, *make.ALL))
    wrong = []
    for name, operation in _operations(app).items():
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if body is not None:
            method, path = name.split(" ")
            address = await real_path(world, path) if parameters_of(path) else path
            response = await client.request(method, address, headers=headers, json=body["example"])
            if response.status_code in (400, 413, 415, 422):
                wrong.append(f"{name}: {body['example']} → {response.text}")
    assert not wrong, "give the fields examples=[…]:\n" + "\n".join(wrong)


@on_sqlite
async def test_the_document_is_served(client: AsyncClient, rt: Runtime) -> None:
    response = await client.get("/api/openapi.json")

    assert response.status_code == 200
    document = response.json()
    assert document["servers"][0]["url"] == rt.settings.public_url
    assert set(document["components"]["securitySchemes"]) == {"api_key", "bearer", "session"}
