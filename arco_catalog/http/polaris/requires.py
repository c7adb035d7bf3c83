"""The privileges that a caller needs for the routes of Polaris's own API (docs/design/access.md#routes).

The functions here read only the request, and raise `BadRequest` for an invalid name in its path, query or body, and
for an invalid header.
"""

from collections.abc import Mapping, Sequence

from arco_catalog.http.decoded_request import DecodedRequest
from arco_catalog.http.names import check_name, check_namespace, decode_namespace
from arco_catalog.http.polaris.access_delegation import wants_credentials
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.shapes import OBJECT, STRING, Fields, list_of, one_of
from arco_catalog.planning.access import Requirement, Securable
from arco_catalog.planning.privileges import Privilege

NOTIFIES = (
    Privilege.TABLE_CREATE,
    Privilege.TABLE_WRITE_PROPERTIES,
    Privilege.TABLE_DROP,
    Privilege.NAMESPACE_CREATE,
    Privilege.NAMESPACE_DROP,
)
"""The privileges on the catalog that a notification needs."""


def notify(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirements of a notification about a table of another catalog: all of `NOTIFIES`, on the
    catalog."""
    return [Requirement(privilege, writes_to=context.namespace) for privilege in NOTIFIES]


def generic_table(context: DecodedRequest) -> Securable:
    """Returns the generic table in the path, as a securable."""
    return Securable(context.namespace, context.path_name("generic-table"), "generic-table")


def load_generic_table(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirement of loading a generic table: reading its data if the client requests credentials,
    otherwise only reading its properties. Raises `BadRequest` for a header that requests another way of access."""
    wants = wants_credentials(context.headers)
    return (
        Requirement(Privilege.TABLE_READ_DATA if wants else Privilege.TABLE_READ_PROPERTIES, generic_table(context)),
    )


def semantic_model(context: DecodedRequest) -> Securable:
    """Returns the semantic model in the path, as a securable."""
    return Securable(context.namespace, context.path_name("semantic-model-name"), "semantic-model")


def policy(context: DecodedRequest) -> Securable:
    """Returns the policy in the path, as a securable."""
    return Securable(context.namespace, policy_name(context), "policy")


def policy_name(context: DecodedRequest) -> str:
    """Returns the name of the policy in the path. Raises the errors of `path_name`."""
    return context.path_name("policy-name")


ATTACH: Mapping[str, Privilege] = {
    "catalog": Privilege.CATALOG_ATTACH_POLICY,
    "namespace": Privilege.NAMESPACE_ATTACH_POLICY,
    "table-like": Privilege.TABLE_ATTACH_POLICY,
}
DETACH: Mapping[str, Privilege] = {
    "catalog": Privilege.CATALOG_DETACH_POLICY,
    "namespace": Privilege.NAMESPACE_DETACH_POLICY,
    "table-like": Privilege.TABLE_DETACH_POLICY,
}


def attach(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirements of attaching the policy in the path to the target in the body: one on the policy, and
    one on the target. Raises the errors of `read_target`."""
    target = read_target(context)
    return Requirement(Privilege.POLICY_ATTACH, policy(context)), Requirement(ATTACH[_type(target)], target)


def detach(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirements of detaching the policy in the path from the target in the body: one on the policy, and
    one on the target. Raises the errors of `read_target`."""
    target = read_target(context)
    return Requirement(Privilege.POLICY_DETACH, policy(context)), Requirement(DETACH[_type(target)], target)


def _type(target: Securable) -> str:
    """Returns the type of a policy's target, in the terms of Polaris: `catalog`, `namespace` or `table-like`."""
    if target.name is not None:
        return "table-like"
    return "namespace" if target.namespace else "catalog"


def read_target(context: DecodedRequest) -> Securable:
    """Returns the target of an attachment from the body: the catalog, a namespace, or a table, view or generic table.
    Raises `BadRequest` for an invalid target."""
    at = "request.target"
    fields = Fields(context.fields.required("target", OBJECT), at)
    kind, path = fields.required("type", one_of(*ATTACH)), fields.optional("path", list_of(STRING)) or []
    separator = context.options.namespace_separator
    if kind == "catalog":
        if path:
            raise BadRequest(f"Invalid {at}.path: a target of type catalog has no path")
        return Securable()
    if kind == "namespace":
        return Securable(check_namespace(path, f"{at}.path", separator))
    if len(path) < 2:
        raise BadRequest(
            f"Invalid {at}.path: it must have at least one level of a namespace, and then the name of a table, view or "
            "generic table"
        )
    name = check_name(path[-1], f"{at}.path[{len(path) - 1}]")
    return Securable(check_namespace(path[:-1], f"{at}.path", separator), name, "table-like")


def read_applicable(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirement of listing the policies that apply to the target in the query: reading the target's
    properties."""
    target = applicable_to(context)
    if target.name is not None:
        properties, of_view = Privilege.TABLE_READ_PROPERTIES, Privilege.VIEW_READ_PROPERTIES
        return (Requirement(properties, target, on_view=of_view),)
    of_namespace = Privilege.NAMESPACE_READ_PROPERTIES
    return (Requirement(of_namespace if target.namespace else Privilege.CATALOG_READ_PROPERTIES, target),)


def applicable_to(context: DecodedRequest) -> Securable:
    """Returns the target from the query: the catalog, a namespace, or a table, view or generic table in one. Raises
    `BadRequest` for an invalid name, and for the name of a table without a namespace."""
    joined, name = context.query.one("namespace"), context.query.one("target-name")
    if not joined:
        if name:
            raise BadRequest("Query parameter 'target-name' needs 'namespace': send the namespace of the target, too")
        return Securable()
    namespace = decode_namespace(context.spelling.parent(joined), context.options.namespace_separator)
    if not name:
        return Securable(namespace)
    return Securable(namespace, check_name(name, "target-name"), "table-like")
