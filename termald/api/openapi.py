"""The description of the HTTP API, made from the routes themselves.

Litestar describes what handlers take and give. What it cannot know is put right here: names in addresses are camelCase
like all others, bodies refuse what they do not name, some bodies may be left out, and every refusal is a problem
document, never Litestar's own shape.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from litestar.routes import HTTPRoute
from litestar.types import Method

from termald.api.strict import Body

_NAMES: Final = {
    "{session_id}": "{id}",
    "{prompt_id}": "{promptId}",
    "{request_id}": "{requestId}",
    "{thread_id}": "{threadId}",
}
_PAGE: Final = re.compile(rb"Page_[\w.]*?(\w+)_(?=\")")  # Page[...Session] is named SessionPage
_DESCRIPTION: Final = (
    "One daemon, one Codex process, any number of durable sessions over it. Refusals are RFC 9457 problems;"
    " `docs/problems.md` lists them. Over TCP every address but `/api/health` wants the token."
)


def openapi_config(version: str) -> OpenAPIConfig:
    """Return what Litestar is to describe the routes with."""
    bearer = SecurityScheme(type="http", scheme="bearer", description="`termald token` prints it")
    return OpenAPIConfig(
        title="termald",
        version=version,
        description=_DESCRIPTION,
        components=Components(security_schemes={"bearer": bearer}),
        use_handler_docstrings=True,
        operation_id_creator=_operation_id,
    )


def _operation_id(handler: HTTPRouteHandler, _: Method, __: Sequence[str | object]) -> str:
    head, *rest = handler.handler_name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def describe(app: Litestar) -> bytes:
    """Return the OpenAPI 3.1 document of an application, as JSON. Some 0.2 s of work."""
    told = msgspec.json.encode(app.openapi_schema.to_schema())
    document: dict[str, Any] = msgspec.json.decode(_PAGE.sub(rb"\1Page", told))
    optional = set(_optional_bodies(app))
    document["paths"] = {_renamed(path): item for path, item in document["paths"].items()}
    for item in document["paths"].values():
        for operation in item.values():
            _finish(operation, body_required=operation["operationId"] not in optional)
    for model in _bodies(Body):
        schema = document["components"]["schemas"].get(model.__name__)
        if schema is not None:
            schema["additionalProperties"] = False
    return msgspec.json.encode(document)


def _optional_bodies(app: Litestar) -> Iterator[str]:
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                field = handler.parsed_data_field
                if field is not None and field.is_optional:
                    yield _operation_id(handler, "POST", ())


def _renamed(path: str) -> str:
    return re.sub(r"\{\w+\}", lambda match: _NAMES.get(match[0], match[0]), path)


def _finish(operation: dict[str, Any], *, body_required: bool) -> None:
    for parameter in operation.get("parameters", ()):
        parameter["name"] = _renamed(f"{{{parameter['name']}}}")[1:-1]
        parameter["schema"] = _without_null(parameter["schema"])
    if "requestBody" in operation:
        operation["requestBody"]["required"] = body_required
    operation["responses"] = {
        status: response
        for status, response in operation["responses"].items()
        # Litestar adds a 400 of its own shape wherever there are parameters; ours is among the problems.
        if not (status == "400" and "application/json" in response.get("content", {}))
    }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter that may be left out cannot be null for that: there is no way to write it."""
    shared = {name: value for name, value in schema.items() if name != "oneOf"}
    if "oneOf" in schema:
        (schema,) = [choice for choice in schema["oneOf"] if choice != {"type": "null"}]
    if isinstance(schema.get("type"), list):
        (kind,) = set(schema["type"]) - {"null"}
        schema = {**schema, "type": kind, "enum": [value for value in schema["enum"] if value is not None]}
        shared.pop("type")
        shared.pop("enum")
    return {**schema, **shared}


def _bodies(base: type[Body]) -> Iterator[type[Body]]:
    for model in base.__subclasses__():
        yield model
        yield from _bodies(model)
