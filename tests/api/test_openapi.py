"""The description: it is one, it is whole, and what it says is true of what is served."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support.api_daemon import Served

from termald.api.problems import TYPE_PREFIX

METHODS = {"get", "put", "post", "patch", "delete"}


@pytest.fixture
async def document(client: httpx.AsyncClient) -> dict[str, Any]:
    response = await client.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    described: dict[str, Any] = response.json()
    return described


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert method in METHODS
            yield path, method, operation


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


async def test_it_is_openapi_31_without_loose_ends(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    schemas = document["components"]["schemas"]
    used = set(references(document))
    assert used <= {f"#/components/schemas/{name}" for name in schemas}
    assert {f"#/components/schemas/{name}" for name in schemas} <= used, "a schema that nothing uses"
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names))
    for path, method, operation in operations(document):
        placed = set(re.findall(r"\{(\w+)\}", path))
        told = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "path"}
        assert placed == told, (method, path)
        assert operation["description"], (method, path)


async def test_every_address_of_the_contract_is_there(document: dict[str, Any]) -> None:
    assert {(method.upper(), path) for path, method, _ in operations(document)} == {
        ("GET", "/api/health"),
        ("GET", "/api/ready"),
        ("GET", "/api/version"),
        ("GET", "/api/state"),
        ("GET", "/api/runtime"),
        ("POST", "/api/runtime/restart"),
        ("GET", "/metrics"),
        ("GET", "/api/models"),
        ("GET", "/api/account"),
        ("GET", "/api/rate-limits"),
        ("GET", "/openapi.json"),
        ("POST", "/api/sessions"),
        ("GET", "/api/sessions"),
        ("GET", "/api/sessions/{id}"),
        ("PATCH", "/api/sessions/{id}"),
        ("POST", "/api/sessions/{id}/interrupt"),
        ("POST", "/api/sessions/{id}/stop"),
        ("POST", "/api/sessions/{id}/close"),
        ("POST", "/api/sessions/{id}/kill"),
        ("POST", "/api/sessions/{id}/fork"),
        ("POST", "/api/sessions/{id}/compact"),
        ("POST", "/api/sessions/{id}/revert"),
        ("POST", "/api/sessions/{id}/review"),
        ("POST", "/api/sessions/{id}/archive"),
        ("POST", "/api/sessions/{id}/unarchive"),
        ("POST", "/api/sessions/{id}/retry"),
        ("POST", "/api/sessions/{id}/prompts"),
        ("POST", "/api/sessions/{id}/prompts/reorder"),
        ("GET", "/api/sessions/{id}/prompts"),
        ("GET", "/api/sessions/{id}/prompts/{promptId}"),
        ("DELETE", "/api/sessions/{id}/prompts/{promptId}"),
        ("GET", "/api/sessions/{id}/turns"),
        ("GET", "/api/sessions/{id}/items"),
        ("GET", "/api/sessions/{id}/requests"),
        ("POST", "/api/sessions/{id}/requests/{requestId}"),
        ("GET", "/api/requests"),
        ("GET", "/api/threads"),
        ("GET", "/api/ignored-threads"),
        ("PUT", "/api/ignored-threads/{threadId}"),
        ("DELETE", "/api/ignored-threads/{threadId}"),
        ("GET", "/api/discovery"),
        ("POST", "/api/discovery/scan"),
        ("GET", "/api/phantoms"),
        ("POST", "/api/phantoms/kill"),
        ("GET", "/api/events"),
        ("GET", "/api/sessions/{id}/events"),
        ("GET", "/api/events/ws"),
        ("POST", "/api/browser-links"),
    }


async def test_every_operation_tells_its_answer_and_its_problems(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        where = f"{method} {path}"
        responses = operation["responses"]
        good = [responses[status] for status in responses if status.startswith("2")]
        if path == "/api/events/ws":
            assert "101" in responses
        else:
            assert good and all("content" in response for response in good), where
        for status, response in responses.items():
            if status >= "400" and (path, status) != ("/api/ready", "503"):
                [(media_type, content)] = response["content"].items()
                assert media_type == "application/problem+json", where
                assert content["schema"] == {"$ref": "#/components/schemas/ProblemDocument"}, where
                assert "`" in response["description"], f"{where} {status} names no slug"
        if path == "/api/health":
            assert "security" not in operation
        else:
            assert operation["security"] == [{"bearer": []}], where
            assert "401" in responses, where
        if "requestBody" in operation:
            assert {"400", "415", "422"} <= responses.keys(), where


ENDINGS = ("/kill", "/retry", "/interrupt", "/stop", "/close")
OPERATIONS = ("/fork", "/compact", "/review", "/archive", "/unarchive")
MAY_BE_EMPTY = (*ENDINGS, *OPERATIONS, "/scan", "/restart", "/browser-links")


async def test_bodies_are_described_as_they_are_read(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for path, method, operation in operations(document):
        if "requestBody" in operation:
            body = operation["requestBody"]
            [reference] = references(body)
            schema = schemas[reference.rsplit("/", 1)[1]]
            assert schema["additionalProperties"] is False, (method, path)
            # A body may be left out where nothing in it is needed; PATCH and answers must say something.
            may_be_left_out = path.endswith(MAY_BE_EMPTY)
            assert body["required"] is not may_be_left_out, (method, path)
    assert set(schemas["CreateSession"]["required"]) == {"cwd"}
    assert schemas["SubmitPrompt"]["required"] == ["input"]


async def test_what_is_served_is_what_is_described(
    api: Served, client: httpx.AsyncClient, document: dict[str, Any]
) -> None:
    """Each operation answers with a status that its description has; the shapes are held by the types."""
    for path, method, operation in operations(document):
        if "events" in path:
            continue
        address = re.sub(r"\{\w+\}", "none", path)
        sent: dict[str, Any] | None = {} if "requestBody" in operation else None
        response = await client.request(method.upper(), address, json=sent)
        assert str(response.status_code) in operation["responses"], (method, path, response.text)
        if response.status_code >= 400:
            described = operation["responses"][str(response.status_code)]["description"]
            slug = response.json()["type"].removeprefix(TYPE_PREFIX)
            assert f"`{slug}`" in described, (method, path, slug)
    assert api.daemon.asked
