"""Request bodies: JSON into a struct, with every field that is wrong named at once.

Litestar would convert leniently ("3" for 3); msgspec is strict, and stops at the first mistake. So a body that does not
convert as a whole is converted field by field, to tell its sender all of it. A field that the struct does not have is
refused: it is a typing error, or meant for another version, and what it asks for would not happen.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from litestar.dto import AbstractDTO
from litestar.openapi.spec import Reference, Schema
from litestar.typing import FieldDefinition

from termald.api.problems import FieldError, ProblemError, invalid

if TYPE_CHECKING:
    # Named in the signatures of the seam, nowhere public, and not needed to run.
    from litestar._openapi.schema_generation import SchemaCreator
    from litestar.dto._backend import DTOBackend

T = TypeVar("T", bound=msgspec.Struct)

_AT: Final = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_STEP: Final = re.compile(r"\[(\.\.\.|\d+)\]|\.?([^.\[\]]+)")


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Base of bodies. None stands for "not said" in an optional field, so `null` and leaving it out are the same;
    where they differ the field may be `UNSET`."""


def read_json(body: bytes) -> Any:
    """Return the body as Python values. Errors: `malformed-body`."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ProblemError("malformed-body", f"the body is not JSON: {error}") from error


def read_body(body: bytes, wanted: type[T]) -> T:
    """Return the body as `wanted`. Errors: `malformed-body`; `invalid-request` with all fields that are wrong."""
    value = read_json(body)
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise invalid(*(_mistakes(value, wanted) or [_mistake(error, "")])) from error


def _mistakes(value: Any, wanted: type[msgspec.Struct]) -> list[FieldError]:
    """What is wrong field by field; empty where only the whole is (two fields that exclude each other)."""
    if not isinstance(value, dict):
        return []
    fields = {field.encode_name: field for field in msgspec.structs.fields(wanted)}
    found = list(_unknown(value, fields))
    for name, field in fields.items():
        if name in value:
            try:
                msgspec.convert(value[name], field.type)
            except msgspec.ValidationError as error:
                found.append(_mistake(error, name))
        elif field.required:
            found.append(FieldError(pointer=_pointer([name]), detail=f"{name}: is missing"))
    return found


def _unknown(value: dict[str, Any], fields: dict[str, Any]) -> Iterator[FieldError]:
    for name in value:
        if name not in fields:
            known = ", ".join(sorted(fields)) or "none"
            yield FieldError(pointer=_pointer([name]), detail=f"{name}: is not a field here; fields are {known}")


def _mistake(error: msgspec.ValidationError, name: str) -> FieldError:
    match = _AT.match(str(error))
    assert match is not None, "the pattern takes any text"
    steps = [index or key for index, key in _STEP.findall(match["path"] or "")]
    path = [name, *steps] if name else steps
    where = f"{'.'.join(path)}: " if path else ""
    return FieldError(pointer=_pointer(path), detail=f"{where}{match['what']}")


def _pointer(path: list[str]) -> str:
    """An RFC 6901 pointer as a URI fragment. (msgspec shows `...` for the key of a map.)"""
    return "#" + "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in path)


def check(value: str, wanted: Any, name: str) -> str:
    """Return a part of the path that is of the type `wanted`. Errors: `invalid-request`."""
    try:
        return str(msgspec.convert(value, wanted))
    except msgspec.ValidationError as error:
        raise invalid(FieldError(parameter=name, detail=f"{name}: {error}")) from error


def to_json(value: Any, *, canonical: bool = False) -> str:
    """Return part of a body as JSON text again; `canonical` sorts its keys. Errors: `malformed-body` for what is nested
    a thousand deep."""
    try:
        return msgspec.json.encode(value, order="deterministic" if canonical else None).decode()
    except RecursionError as error:
        raise ProblemError("malformed-body", f"the body is not JSON that anybody reads: {error}") from error


def fingerprint(method: str, path: str, body: bytes) -> str:
    """Return a digest of what is asked for, the same for any layout and order of the body's fields."""
    canonical = to_json(read_json(body), canonical=True) if body else ""
    return hashlib.sha256("\n".join((method, path, canonical)).encode()).hexdigest()


class StrictBody(AbstractDTO[Any]):
    """How Litestar is made to read bodies this way: its seam for decoding, and nothing else of its DTOs."""

    @classmethod
    def create_for_field_definition(
        cls, field_definition: FieldDefinition, handler_id: str, backend_cls: "type[DTOBackend] | None" = None
    ) -> None:
        """Nothing to prepare: the handler's annotation is the model."""

    @classmethod
    def generate_field_definitions(cls, model_type: type[Any]) -> Iterator[Any]:  # type: ignore[override]  # no fields
        """No transfer model is made."""
        return iter(())

    @classmethod
    def detect_nested_field(cls, field_definition: FieldDefinition) -> bool:
        """No transfer model is made."""
        return False

    @classmethod
    def create_openapi_schema(
        cls, field_definition: FieldDefinition, handler_id: str, schema_creator: "SchemaCreator"
    ) -> Reference | Schema:
        """The model's own schema, for a body that may be left out as well: `openapi` says that it may."""
        return schema_creator.for_field_definition(_model(field_definition))

    def decode_bytes(self, value: bytes) -> Any:
        """Read the body; a handler's parameter names the struct."""
        field = self.asgi_connection.route_handler.parsed_data_field
        assert field is not None, "only handlers with a body decode one"
        return read_body(value, _model(field).annotation)


def _model(field: FieldDefinition) -> FieldDefinition:
    return next(inner for inner in field.inner_types if not inner.is_none_type) if field.is_optional else field
