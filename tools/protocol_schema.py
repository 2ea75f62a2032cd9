"""Reading Codex's JSON Schema, and loosening it into one that lenient types can be generated from. Pure.

A closed enum becomes a string, a tagged union one object with every variant's fields, any other union any JSON. A field
that is read is required only where nothing can be done without it; what is only written keeps its exact shape.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

Schema = dict[str, Any]
Definitions = dict[str, Schema]

# Without these a message that is read means nothing: whose it is, what it is, and what it brings.
INDISPENSABLE: Final = frozenset(
    (
        *("id", "threadId", "turnId", "itemId", "requestId", "thread", "turn", "item"),
        *("type", "status", "delta", "message", "data", "error", "tokenUsage", "last", "total"),
    )
)
# Kept as bytes: an item is stored and passed on verbatim, and one that cannot be read must not spoil its turn. Prompts
# are JSON that the edge has checked already.
RAW_DEFINITIONS: Final = frozenset({"ThreadItem"})
RAW_FIELDS: Final = frozenset({("TurnStartParams", "input"), ("TurnSteerParams", "input")})
RAW: Final[Schema] = {"customTypePath": "msgspec.Raw"}
ANY: Final[Schema] = {}
NULL: Final[Schema] = {"type": "null"}


def flatten(bundle: Schema) -> Definitions:
    """Return all definitions under one roof: the bundle keeps `v2`'s in a folder of their own, and refers across."""
    top: Definitions = dict(bundle["definitions"])
    inner: Definitions = top.pop("v2")
    text = json.dumps({**top, **inner})
    definitions: Definitions = json.loads(text.replace("#/definitions/v2/", "#/definitions/"), object_hook=_spelled_out)
    return definitions


def _spelled_out(node: Schema) -> Schema:
    """JSON Schema may say `true` for anything; say it as an empty schema, so that every schema is an object."""
    properties = node.get("properties")
    if isinstance(properties, dict):
        node["properties"] = {name: dict(ANY) if schema is True else schema for name, schema in properties.items()}
    if node.get("items") is True:
        node["items"] = dict(ANY)
    return node


def methods_of(definitions: Definitions, family: str) -> dict[str, str | None]:
    """Return method -> name of its params definition (None where it takes none) for `ClientRequest` and the like."""
    found: dict[str, str | None] = {}
    for variant in definitions[family]["oneOf"]:
        properties = variant["properties"]
        (method,) = properties["method"]["enum"]
        params = without_null(properties.get("params", NULL))
        reference = params.get("$ref") or next((part["$ref"] for part in params.get("allOf", [])), None)
        found[method] = name_of(reference) if reference else None
    return found


def response_of(definitions: Definitions, params: str | None) -> str | None:
    """Return the response type of a request. The schema does not link the two; Codex names them alike."""
    if params is None:
        return None
    name = params.removeprefix("Nullable").removesuffix("Params") + "Response"
    if name not in definitions:
        raise SystemExit(f"no {name} for {params}: Codex's naming changed, teach response_of")
    return name


def reachable(definitions: Definitions, roots: set[str]) -> frozenset[str]:
    """Return the roots and every definition that they refer to."""
    seen: set[str] = set()
    waiting = sorted(roots)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += re.findall(r'"#/definitions/([^"]+)"', json.dumps(definitions[name]))
    return frozenset(seen)


def name_of(reference: str) -> str:
    return reference.rpartition("/")[2]


def allows_null(schema: Schema) -> bool:
    return (
        schema == ANY
        or "null" in schema.get("type", ())
        or any(NULL in schema.get(union, ()) for union in ("anyOf", "oneOf"))
    )


def without_null(schema: Schema) -> Schema:
    """Return the schema with the alternative null taken off."""
    kind = schema.get("type")
    if isinstance(kind, list) and "null" in kind:
        rest = [entry for entry in kind if entry != "null"]
        return {**schema, "type": rest[0] if len(rest) == 1 else rest}
    for union in ("anyOf", "oneOf"):
        if NULL in schema.get(union, ()):
            parts = [part for part in schema[union] if part != NULL]
            return dict(parts[0]) if len(parts) == 1 else {**schema, union: parts}
    return schema


def variants_of(schema: Schema) -> Iterator[Schema]:
    """Yield the variants of a union; one that is itself a union counts as each of its own, with what they share."""
    inner = schema.get("oneOf") or schema.get("anyOf")
    if inner is None:
        yield schema
    for part in inner or ():
        for variant in variants_of(part):
            shared = {**schema.get("properties", {}), **variant.get("properties", {})}
            required = [*schema.get("required", ()), *variant.get("required", ())]
            yield {**variant, "properties": shared, "required": required} if shared else variant


def tag_of(variants: list[Schema]) -> str | None:
    """Return the property that tells the variants apart: each has it, with one value of its own."""
    for name in variants[0].get("properties", {}):
        if all(len(variant.get("properties", {}).get(name, {}).get("enum", ())) == 1 for variant in variants):
            return str(name)
    return None


def bare(schema: Schema) -> Schema:
    """Return the schema without what only people read, and without null, so that two can be compared."""
    core = without_null({key: value for key, value in schema.items() if key not in {"description", "title", "default"}})
    return dict(core["allOf"][0]) if len(core.get("allOf", ())) == 1 else core


class Loosener:
    """Collects what is reachable from the roots, as definitions that become lenient structs.

    `written` names the types that termald only sends: they keep which fields are required and which may be null.
    """

    def __init__(self, definitions: Definitions, written: frozenset[str]) -> None:
        self._definitions = definitions
        self._written = written
        self.objects: Definitions = {}

    def add(self, name: str) -> None:
        """Take in an object and all that it refers to."""
        if name in self.objects:
            return
        source = self._object(self._definitions[name])
        if source is None:
            raise SystemExit(f"{name} is not an object")
        self.objects[name] = {}  # holds the place: definitions refer to themselves
        exact = name in self._written
        required = set(source.get("required", ())) if exact else set(source.get("required", ())) & INDISPENSABLE
        properties: dict[str, Schema] = {}
        for field, schema in source.get("properties", {}).items():
            value = dict(RAW) if (name, field) in RAW_FIELDS else self._value(schema)
            optional = allows_null(schema) or not (exact or field in required)
            properties[field] = nullable(value) if optional else value
        self.objects[name] = {
            "type": "object",
            "description": f"{first_sentence(self._definitions[name])}",
            "properties": properties,
            "required": sorted(required),
        }

    def _object(self, schema: Schema) -> Schema | None:
        """Return the definition as one object: itself, or a tagged union merged; None if it is neither."""
        if schema.get("type") == "object" and not ("oneOf" in schema or "anyOf" in schema):
            return schema if "properties" in schema or "additionalProperties" not in schema else None
        variants = list(variants_of(schema))
        tag = tag_of(variants)
        return self._merged(variants, tag) if tag is not None else None

    def _merged(self, variants: list[Schema], tag: str) -> Schema:
        """Return one object that holds any of the variants; required is what all of them require."""
        properties: dict[str, Schema] = {tag: {"type": "string"}}
        for variant in variants:
            for name, schema in variant["properties"].items():
                known = properties.setdefault(name, schema)
                if name != tag and known != schema and self._value(known) != self._value(schema):
                    properties[name] = ANY
        required = set.intersection(*(set(variant.get("required", ())) for variant in variants))
        return {"type": "object", "properties": properties, "required": sorted(required)}

    def _value(self, schema: Schema) -> Schema:
        """Return what a field's value becomes; the objects that it refers to are taken in."""
        schema = bare(schema)
        if "$ref" in schema:
            return self._reference(name_of(schema["$ref"]))
        if "enum" in schema or all("enum" in variant for variant in variants_of(schema)):
            return {"type": "string"}
        match schema.get("type"):
            case "array" if isinstance(schema.get("items"), dict):
                return {"type": "array", "items": self._value(schema["items"])}
            case "object" if isinstance(schema.get("additionalProperties"), dict) and "properties" not in schema:
                return {"type": "object", "additionalProperties": self._value(schema["additionalProperties"])}
            case "object" if "properties" not in schema:
                return {"type": "object", "additionalProperties": True}
            case "string" | "boolean" | "integer" | "number" as scalar:
                return {"type": scalar}
            case _:
                return dict(ANY)

    def _reference(self, name: str) -> Schema:
        if name in RAW_DEFINITIONS:
            self.add(name)
            return dict(RAW)
        target = self._definitions[name]
        if self._object(target) is None:
            return self._value(target)
        self.add(name)
        return {"$ref": f"#/definitions/{name}"}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, NULL]} if schema not in (ANY, RAW) else schema


def first_sentence(schema: Schema) -> str:
    text = " ".join(schema.get("description", "").split())
    return re.split(r"(?<=[.!?]) ", text)[0]
