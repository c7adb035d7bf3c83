"""What bodies of the management API say."""

from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.http.names import check_name, check_namespace
from arco_catalog.http.request_context import RequestContext
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import BOOLEAN, INT, LONG, OBJECT, STRING, STRINGS, Fields, list_of, one_of
from arco_catalog.planning.access import Securable, SecurableKind
from arco_catalog.planning.privileges import GRANTABLE


@dataclass(frozen=True, slots=True)
class Entity:
    """A principal or role as a body describes it."""

    name: str
    properties: dict[str, str]
    federated: bool


def read_entity(context: RequestContext, field: str) -> Entity:
    """The entity to make. Raises `BadRequest`."""
    fields = _entity(context, field)
    return Entity(
        fields.required("name", STRING),
        fields.optional("properties", STRINGS) or {},
        fields.optional("federated", BOOLEAN) or False,
    )


def read_name_of(context: RequestContext, field: str) -> str:
    """The name of an entity that a body only refers to. Raises `BadRequest`."""
    return _entity(context, field).required("name", STRING)


def _entity(context: RequestContext, field: str) -> Fields:
    """An entity of the body. What only answers tell, clients may send back."""
    fields = Fields(context.fields.required(field, OBJECT), f"request.{field}")
    for told in ("createTimestamp", "lastUpdateTimestamp", "entityVersion"):
        fields.optional(told, LONG)
    return fields


@dataclass(frozen=True, slots=True)
class GrantBody:
    """A privilege on a securable as a body describes it."""

    kind: str
    securable: Securable
    privilege: str


def read_grant(context: RequestContext) -> GrantBody:
    """The grant in the body. Raises `BadRequest`."""
    at = "request.grant"
    fields = Fields(context.fields.required("grant", OBJECT), at)
    kind, privilege = fields.required("type", one_of(*GRANTABLE)), fields.required("privilege", STRING)
    if kind == "catalog":
        return GrantBody(kind, Securable(), privilege)
    levels = fields.required("namespace", list_of(STRING))
    namespace = check_namespace(levels, f"{at}.namespace", context.options.namespace_separator)
    if kind == "namespace":
        return GrantBody(kind, Securable(namespace), privilege)
    name = check_name(fields.required(f"{kind}Name", STRING), f"{at}.{kind}Name")
    return GrantBody(kind, Securable(namespace, name, _KINDS[kind]), privilege)


_KINDS: Mapping[str, SecurableKind] = {"table": "table", "view": "view", "policy": "policy"}


def granted_on(context: RequestContext) -> Securable:
    """What the privilege in the body is on. Raises `BadRequest`."""
    return read_grant(context).securable


def read_update(context: RequestContext) -> tuple[int, dict[str, str]]:
    """The version that a change is meant for, and the properties. Raises `BadRequest`."""
    return context.fields.required("currentEntityVersion", INT), context.fields.required("properties", STRINGS)


def optional_object(fields: Fields, name: str) -> JsonObject | None:
    """An object that may be missing. Raises `BadRequest`."""
    return fields.optional(name, OBJECT)
