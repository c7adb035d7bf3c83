"""Reads the bodies of requests to the management API."""

from collections.abc import Collection, Mapping, Sequence

from arco_catalog.http.decoded_request import DecodedRequest
from arco_catalog.http.names import check_name, check_namespace
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.shapes import BOOLEAN, INT, LONG, NAME, OBJECT, STRING, STRINGS, Fields, list_of, one_of
from arco_catalog.planning.access import Requirement, Securable, SecurableKind
from arco_catalog.planning.privilege_check import MAX_CHECKS, Check
from arco_catalog.planning.privileges import GRANTABLE, Privilege
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The form of a body of the management API with one value, either in the field `name` or as the body itself:
    Polaris accepts both forms, and its Java client sends the second. `fields` are the fields of the value; `beside` are
    the other fields of the first form."""

    name: str
    fields: frozenset[str]
    beside: frozenset[str] = frozenset()

    def value(self, body: Fields) -> Fields:
        """Returns the fields of the value in a body, which has them either in one field or directly. Raises
        `BadRequest` for a mixture of both forms, for neither, and if the one field is no object. Null counts as
        missing."""
        sent = {name for name, value in body.values.items() if value is not None}
        bare = self.fields & sent
        if self.name in sent:
            if bare:
                raise BadRequest(f"Invalid {body.at}: {_names(bare)} must be inside {self.name!r}, not beside it")
            return Fields(body.required(self.name, OBJECT), f"{body.at}.{self.name}")
        if not bare:
            raise BadRequest(f"Invalid {body.at}: missing required field {self.name!r}")
        if beside := self.beside & sent:
            raise BadRequest(f"Invalid {body.at}: with {_names(beside)}, {_names(bare)} must be inside {self.name!r}")
        return body


def _names(fields: Collection[str]) -> str:
    """Formats names of fields for a message."""
    return ", ".join(repr(name) for name in sorted(fields))


_ENTITY = frozenset({"name", "properties", "federated", "createTimestamp", "lastUpdateTimestamp", "entityVersion"})
CATALOG = Wrapper("catalog", _ENTITY | {"type", "storageConfigInfo", "connectionConfigInfo"})
PRINCIPAL = Wrapper("principal", _ENTITY | {"clientId"}, frozenset({"credentialRotationRequired"}))
PRINCIPAL_ROLE = Wrapper("principalRole", _ENTITY)
CATALOG_ROLE = Wrapper("catalogRole", _ENTITY)
GRANT = Wrapper("grant", frozenset({"type", "privilege", "namespace", "tableName", "viewName", "policyName"}))


@dataclass(frozen=True, slots=True)
class Entity:
    """A principal or role as a request to the management API describes it. `federated` is false if the request does not
    have the field."""

    name: str
    properties: dict[str, str]
    federated: bool


def read_entity(context: DecodedRequest, wrapper: Wrapper) -> Entity:
    """Returns the principal or role that the body describes. Raises `BadRequest` for a body of another form; any string
    is accepted as a name."""
    fields = _entity(context, wrapper)
    return Entity(
        fields.required("name", STRING),
        fields.optional("properties", STRINGS) or {},
        fields.optional("federated", BOOLEAN) or False,
    )


def read_name_of(context: DecodedRequest, wrapper: Wrapper) -> str:
    """Returns the name of the role to assign, which the body has. Raises `BadRequest` for a body of another form; any
    string is accepted as a name."""
    return _entity(context, wrapper).required("name", STRING)


def _entity(context: DecodedRequest, wrapper: Wrapper) -> Fields:
    """Returns the fields of the entity in the body. Raises `BadRequest`, also for a field of responses, as
    `createTimestamp`, that is no integer; such fields are otherwise ignored."""
    fields = wrapper.value(context.fields)
    for answered in ("createTimestamp", "lastUpdateTimestamp", "entityVersion"):
        fields.optional(answered, LONG)
    return fields


@dataclass(frozen=True, slots=True)
class GrantBody:
    """A privilege on a securable (the catalog, a namespace, table, view or policy) as a request to the management API
    describes it."""

    kind: str
    securable: Securable
    privilege: str


def read_grant(context: DecodedRequest) -> GrantBody:
    """Returns the grant in the body. Raises `BadRequest` for a body of another form or an invalid securable; any string
    is accepted as the privilege."""
    return _grant_in(GRANT.value(context.fields), context.options.namespace_separator)


def _grant_in(fields: Fields, separator: str) -> GrantBody:
    """Reads a grant: privilege and securable. Raises `BadRequest` for an invalid securable, and if the privilege is
    missing or no string; any string is accepted."""
    at = fields.at
    kind, privilege = fields.required("type", one_of(*GRANTABLE)), fields.required("privilege", STRING)
    if kind == "catalog":
        return GrantBody(kind, Securable(), privilege)
    levels = fields.required("namespace", list_of(STRING))
    namespace = check_namespace(levels, f"{at}.namespace", separator)
    if kind == "namespace":
        return GrantBody(kind, Securable(namespace), privilege)
    name = check_name(fields.required(f"{kind}Name", STRING), f"{at}.{kind}Name")
    return GrantBody(kind, Securable(namespace, name, _KINDS[kind]), privilege)


_KINDS: Mapping[str, SecurableKind] = {"table": "table", "view": "view", "policy": "policy"}


def granted_on(context: DecodedRequest) -> Securable:
    """Returns the securable of the grant in the body. Raises `BadRequest` as `read_grant` does."""
    return read_grant(context).securable


def read_batch(context: DecodedRequest) -> Sequence[Check]:
    """Returns the batch in the body, of privileges to check. Raises `BadRequest`, also for more than `MAX_CHECKS`."""
    checks = context.fields.required("checks", list_of(OBJECT))
    if len(checks) > MAX_CHECKS:
        raise BadRequest(f"Invalid request.checks: there may be {MAX_CHECKS:,} at most, not {len(checks):,}")
    separator = context.options.namespace_separator
    return [_check_in(Fields(each, f"request.checks[{place}]"), separator) for place, each in enumerate(checks)]


def _check_in(fields: Fields, separator: str) -> Check:
    """Returns one check of a batch: whether a principal, or the caller if it names none, has a privilege on a
    securable. Raises the errors of `_grant_in` and `Fields`."""
    body = _grant_in(fields, separator)
    privilege = Privilege(fields.required("privilege", one_of(*Privilege)))
    return Check(privilege, body.kind, body.securable, fields.optional("principal", NAME))


def checked_for_others(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirements of a batch to check: CATALOG_MANAGE_ACCESS on each securable for which it names a
    principal. Raises `BadRequest` as `read_batch` does."""
    others = (check.on for check in context.parsed(read_batch) if check.principal is not None)
    return [Requirement(Privilege.CATALOG_MANAGE_ACCESS, on) for on in dict.fromkeys(others)]


def read_update(context: DecodedRequest) -> tuple[int, dict[str, str]]:
    """Returns the entity version that the change in the body expects, and the new properties. Raises `BadRequest` if
    one of them is missing or invalid."""
    return context.fields.required("currentEntityVersion", INT), context.fields.required("properties", STRINGS)
