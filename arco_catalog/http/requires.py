"""What each route needs of whoever asks: privileges, and on what (docs/design/access.md#routes).

Only what the request names counts here; what it means is judged where the registry is read. A request whose body names
nothing that can be judged is refused by its handler, for what is wrong with it.
"""

from collections.abc import Callable, Mapping, Sequence

from arco_catalog.http.access_delegation import asked
from arco_catalog.http.decoded_request import DecodedRequest
from arco_catalog.http.names import creates, decode_namespace, read_namespace, required_identifier
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import OBJECT, Fields, list_of
from arco_catalog.planning.access import Requirement, Securable
from arco_catalog.planning.privileges import Privilege

Requires = Callable[[DecodedRequest], Sequence[Requirement]]
Named = Callable[[DecodedRequest], Securable]

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
"""What an update of a table needs; one that is not listed here needs TABLE_WRITE_PROPERTIES, as does none at all."""


READING = ("GET", "HEAD")
"""Methods of requests to be signed that change no file."""


def nothing(context: DecodedRequest) -> Sequence[Requirement]:
    """For whoever has any privilege in the catalog, or is known to the realm."""
    return ()


def needs(privilege: Privilege, on: Named | None = None) -> Requires:
    """One privilege on what the request names, or on the catalog."""
    if on is None:
        required = (Requirement(privilege),)
        return lambda context: required
    return lambda context: (Requirement(privilege, on(context)),)


def both(*requires: Requires) -> Requires:
    """All of these."""
    return lambda context: [each for one in requires for each in one(context)]


def governs(reads: Privilege, on: Named) -> Requires:
    """Who says what something is for, and may read what it then is."""
    return both(needs(Privilege.CATALOG_MANAGE_ACCESS, on), needs(reads, on))


def namespace(context: DecodedRequest) -> Securable:
    """The namespace in the path."""
    return Securable(context.namespace)


def parent(context: DecodedRequest) -> Securable:
    """The namespace whose children are listed."""
    joined = context.query.one("parent")
    separator = context.options.namespace_separator
    return Securable(decode_namespace(context.spelling.parent(joined), separator) if joined else ())


def new_namespace(context: DecodedRequest) -> Sequence[Requirement]:
    """A namespace, in its parent."""
    made = read_namespace(context.fields, context.options.namespace_separator)
    return (Requirement(Privilege.NAMESPACE_CREATE, Securable(made[:-1]), writes_to=made),)


def table(context: DecodedRequest) -> Securable:
    """The table in the path."""
    return Securable(context.namespace, context.table)


def view(context: DecodedRequest) -> Securable:
    """The view in the path."""
    return Securable(context.namespace, context.view, "view")


def source_table(context: DecodedRequest) -> Securable:
    """The table that is renamed."""
    return Securable(*required_identifier(context.fields, "source", context.options.namespace_separator))


def source_view(context: DecodedRequest) -> Securable:
    """The view that is renamed."""
    return Securable(*required_identifier(context.fields, "source", context.options.namespace_separator), "view")


def destination(context: DecodedRequest) -> Securable:
    """The namespace that something renamed goes to."""
    return Securable(required_identifier(context.fields, "destination", context.options.namespace_separator)[0])


def load(context: DecodedRequest) -> Sequence[Requirement]:
    """A table's metadata; its files, too, for a client that wants access to them."""
    privilege = Privilege.TABLE_READ_DATA if asked(context.headers) else Privilege.TABLE_READ_PROPERTIES
    return (Requirement(privilege, table(context)),)


def signature(context: DecodedRequest) -> Sequence[Requirement]:
    """What a request that is to be signed does to a file."""
    method = context.fields.values.get("method")
    reads = isinstance(method, str) and method.upper() in READING
    return (Requirement(Privilege.TABLE_READ_DATA if reads else Privilege.TABLE_WRITE_DATA, table(context)),)


def registration(context: DecodedRequest) -> Sequence[Requirement]:
    """A name for a file; with `overwrite` in place of a table, whatever that is."""
    required = [Requirement(Privilege.TABLE_CREATE, namespace(context))]
    name = context.fields.values.get("name")
    if context.fields.values.get("overwrite") is True and isinstance(name, str):
        required.append(Requirement(Privilege.TABLE_FULL_METADATA, Securable(context.namespace, name), if_there=True))
    return required


def commit(context: DecodedRequest) -> Sequence[Requirement]:
    """The updates of a commit to the table in the path."""
    return _updates(context.fields.values, Securable(context.namespace, context.table))


def transaction(context: DecodedRequest) -> Sequence[Requirement]:
    """The updates of each table of a transaction."""
    required: list[Requirement] = []
    for place, change in enumerate(context.fields.required("table-changes", list_of(OBJECT))):
        fields = Fields(change, f"request.table-changes[{place}]")
        named = required_identifier(fields, "identifier", context.options.namespace_separator)
        required += _updates(change, Securable(*named))
    return list(dict.fromkeys(required))


def drop(context: DecodedRequest) -> Sequence[Requirement]:
    """A drop; one with a purge takes the data, too."""
    required = [Requirement(Privilege.TABLE_DROP, table(context))]
    if context.query.flag("purgeRequested"):
        required.append(Requirement(Privilege.TABLE_WRITE_DATA, table(context)))
    return required


def report(context: DecodedRequest) -> Sequence[Requirement]:
    """What an engine tells of a scan, or of a commit."""
    of_commit = context.fields.values.get("report-type") == "commit-report"
    return (Requirement(Privilege.TABLE_WRITE_DATA if of_commit else Privilege.TABLE_READ_DATA, table(context)),)


def _updates(change: JsonObject, on: Securable) -> Sequence[Requirement]:
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
