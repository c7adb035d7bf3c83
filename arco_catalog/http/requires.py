"""The privileges that a caller needs for each route, and on which securables (docs/design/access.md#routes).

The functions here read only the request, and raise `BadRequest` for a name in the path, query or body that is invalid
or, where they need it, missing. The requirements are checked where the registry is read. For a body that is wrong in
another way they may be empty or incomplete; the handler then rejects the body.
"""

from collections.abc import Callable, Mapping, Sequence

from arco_catalog.http.access_delegation import requested_ways
from arco_catalog.http.decoded_request import DecodedRequest
from arco_catalog.http.names import creates, decode_namespace, read_namespace, required_identifier
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import OBJECT, Fields, list_of
from arco_catalog.planning.access import Requirement, Securable
from arco_catalog.planning.privileges import Privilege

Requires = Callable[[DecodedRequest], Sequence[Requirement]]
SecurableReader = Callable[[DecodedRequest], Securable]

UPDATES: Mapping[str, Privilege] = {
    "assign-uuid": Privilege.TABLE_ASSIGN_UUID,
    "upgrade-format-version": Privilege.TABLE_UPGRADE_FORMAT_VERSION,
    "add-schema": Privilege.TABLE_ADD_SCHEMA,
    "set-current-schema": Privilege.TABLE_SET_CURRENT_SCHEMA,
    "add-spec": Privilege.TABLE_ADD_PARTITION_SPEC,
    "add-sort-order": Privilege.TABLE_ADD_SORT_ORDER,
    "set-default-sort-order": Privilege.TABLE_SET_DEFAULT_SORT_ORDER,
    "add-snapshot": Privilege.TABLE_ADD_SNAPSHOT,
    "set-snapshot-ref": Privilege.TABLE_SET_SNAPSHOT_REF,
    "remove-snapshots": Privilege.TABLE_REMOVE_SNAPSHOTS,
    "remove-snapshot-ref": Privilege.TABLE_REMOVE_SNAPSHOT_REF,
    "set-location": Privilege.TABLE_SET_LOCATION,
    "set-properties": Privilege.TABLE_SET_PROPERTIES,
    "remove-properties": Privilege.TABLE_REMOVE_PROPERTIES,
    "set-statistics": Privilege.TABLE_SET_STATISTICS,
    "remove-statistics": Privilege.TABLE_REMOVE_STATISTICS,
    "remove-partition-specs": Privilege.TABLE_REMOVE_PARTITION_SPECS,
}
"""The privilege that each update of a table needs. An update that is not listed needs TABLE_WRITE_PROPERTIES, and so
does a commit without updates."""


READING = ("GET", "HEAD")
"""The methods of storage requests that change no file."""


def nothing(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns no requirement: every caller with any privilege in the catalog may use the route, or every principal of
    the realm if the route names no catalog."""
    return ()


def needs(privilege: Privilege, on: SecurableReader | None = None) -> Requires:
    """Returns a function that requires one privilege, on the securable that `on` reads from the request or, without
    `on`, on the catalog."""
    if on is None:
        required = (Requirement(privilege),)
        return lambda context: required
    return lambda context: (Requirement(privilege, on(context)),)


def both(*requires: Requires) -> Requires:
    """Returns a function that requires all that these functions require."""
    return lambda context: [each for one in requires for each in one(context)]


def governs(reads: Privilege, on: SecurableReader) -> Requires:
    """Returns a function that requires two privileges for a change of a securable's governance: the one to manage
    access on the securable, and `reads`, because the response contains the governance."""
    return both(needs(Privilege.CATALOG_MANAGE_ACCESS, on), needs(reads, on))


def namespace(context: DecodedRequest) -> Securable:
    """Returns the namespace in the path, as a securable."""
    return Securable(context.namespace)


def parent(context: DecodedRequest) -> Securable:
    """Returns the namespace in the query's `parent`, or the catalog if that is missing or empty, as a securable. Raises
    `BadRequest` for an invalid one."""
    joined = context.query.one("parent")
    separator = context.options.namespace_separator
    return Securable(decode_namespace(context.spelling.parent(joined), separator) if joined else ())


def new_namespace(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirement of creating the namespace in the body: NAMESPACE_CREATE on its parent. Raises
    `BadRequest` for a body without a valid namespace."""
    made = read_namespace(context.fields, context.options.namespace_separator)
    return (Requirement(Privilege.NAMESPACE_CREATE, Securable(made[:-1]), writes_to=made),)


def table(context: DecodedRequest) -> Securable:
    """Returns the table in the path, as a securable."""
    return Securable(context.namespace, context.table)


def view(context: DecodedRequest) -> Securable:
    """Returns the view in the path, as a securable."""
    return Securable(context.namespace, context.view, "view")


def source_table(context: DecodedRequest) -> Securable:
    """Returns the table that the body of a rename names as source, as a securable. Raises `BadRequest` if it names
    none, or an invalid one."""
    return Securable(*required_identifier(context.fields, "source", context.options.namespace_separator))


def source_view(context: DecodedRequest) -> Securable:
    """Returns the view that the body of a rename names as source, as a securable. Raises `BadRequest` if it names
    none, or an invalid one."""
    return Securable(*required_identifier(context.fields, "source", context.options.namespace_separator), "view")


def destination(context: DecodedRequest) -> Securable:
    """Returns the namespace of the destination in the body of a rename, as a securable. Raises `BadRequest` if the body
    has no valid destination."""
    return Securable(required_identifier(context.fields, "destination", context.options.namespace_separator)[0])


def load(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirement of loading a table: reading its data if the client requests access to its files,
    otherwise only reading its properties."""
    privilege = Privilege.TABLE_READ_DATA if requested_ways(context.headers) else Privilege.TABLE_READ_PROPERTIES
    return (Requirement(privilege, table(context)),)


def signature(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirement of signing the storage request in the body: reading the table's data if its method is
    GET or HEAD, otherwise writing it."""
    method = context.fields.values.get("method")
    reads = isinstance(method, str) and method.upper() in READING
    return (Requirement(Privilege.TABLE_READ_DATA if reads else Privilege.TABLE_WRITE_DATA, table(context)),)


def registration(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirements of registering a metadata file as a table: creating tables in the namespace, and with
    `overwrite` also TABLE_FULL_METADATA on the table that has the name, if there is one."""
    required = [Requirement(Privilege.TABLE_CREATE, namespace(context))]
    name = context.fields.values.get("name")
    if context.fields.values.get("overwrite") is True and isinstance(name, str):
        required.append(Requirement(Privilege.TABLE_FULL_METADATA, Securable(context.namespace, name), if_there=True))
    return required


def commit(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirements of a commit to the table in the path: the privileges of the updates, or
    TABLE_WRITE_PROPERTIES without updates; if it creates the table, only TABLE_CREATE on the namespace."""
    return _updates(context.fields.values, Securable(context.namespace, context.table))


def transaction(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirements of the commits to all tables of a transaction, as `commit` has them for one table,
    without duplicates. Raises `BadRequest` for a body without valid identifiers of tables."""
    required: list[Requirement] = []
    for place, change in enumerate(context.fields.required("table-changes", list_of(OBJECT))):
        fields = Fields(change, f"request.table-changes[{place}]")
        named = required_identifier(fields, "identifier", context.options.namespace_separator)
        required += _updates(change, Securable(*named))
    return list(dict.fromkeys(required))


def drop(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirements of dropping a table: TABLE_DROP on it; with a purge also TABLE_WRITE_DATA."""
    required = [Requirement(Privilege.TABLE_DROP, table(context))]
    if context.query.flag("purgeRequested"):
        required.append(Requirement(Privilege.TABLE_WRITE_DATA, table(context)))
    return required


def report(context: DecodedRequest) -> Sequence[Requirement]:
    """Returns the requirement of sending an engine's metrics report: writing the table's data for a report of a commit,
    reading it for any other report."""
    of_commit = context.fields.values.get("report-type") == "commit-report"
    return (Requirement(Privilege.TABLE_WRITE_DATA if of_commit else Privilege.TABLE_READ_DATA, table(context)),)


def _updates(change: JsonObject, on: Securable) -> Sequence[Requirement]:
    """Returns the privileges on a table that the updates of a commit require, sorted and without duplicates;
    TABLE_WRITE_PROPERTIES for unlisted updates and for a commit without updates. For a commit that creates the table,
    only the privilege to create tables in the namespace."""
    if creates(change):
        return (Requirement(Privilege.TABLE_CREATE, Securable(on.namespace)),)
    updates = change.get("updates")
    actions = {
        str(update.get("action")).lower()
        for update in (updates if isinstance(updates, list) else ())
        if isinstance(update, dict)
    }
    privileges = {UPDATES.get(action, Privilege.TABLE_WRITE_PROPERTIES) for action in actions} or {
        Privilege.TABLE_WRITE_PROPERTIES
    }
    return [Requirement(privilege, on) for privilege in sorted(privileges)]
