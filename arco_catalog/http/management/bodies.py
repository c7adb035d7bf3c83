"""What bodies of the management API say."""

from dataclasses import dataclass

from arco_catalog.http.request_context import RequestContext
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import BOOLEAN, INT, OBJECT, STRING, STRINGS, Fields


@dataclass(frozen=True, slots=True)
class Entity:
    """A principal or role as a body describes it."""

    name: str
    properties: dict[str, str]
    federated: bool


def read_entity(context: RequestContext, field: str) -> Entity:
    """The entity to make. Raises `BadRequest`."""
    fields = Fields(context.fields.required(field, OBJECT), f"request.{field}")
    return Entity(
        fields.required("name", STRING),
        fields.optional("properties", STRINGS) or {},
        fields.optional("federated", BOOLEAN) or False,
    )


def read_name_of(context: RequestContext, field: str) -> str:
    """The name of an entity that a body only refers to. Raises `BadRequest`."""
    return Fields(context.fields.required(field, OBJECT), f"request.{field}").required("name", STRING)


def read_update(context: RequestContext) -> tuple[int, dict[str, str]]:
    """The version that a change is meant for, and the properties. Raises `BadRequest`."""
    return context.fields.required("currentEntityVersion", INT), context.fields.required("properties", STRINGS)


def optional_object(fields: Fields, name: str) -> JsonObject | None:
    """An object that may be missing. Raises `BadRequest`."""
    return fields.optional(name, OBJECT)
