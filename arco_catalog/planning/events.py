"""Events of changes, in the shapes of a proposal for Iceberg's REST specification: pure functions of receipts
and operations (docs/events.md, docs/decisions/0111-events-follow-a-proposal.md).

A field that the record of a change lacks is left out of the event: the catalog stores the names of updates, not the
updates, and not every operation on a name has the uuid of its table.
"""

from collections.abc import Mapping, Sequence

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import integer, mapping, optional_text, texts

Levels = tuple[str, ...]
"""The levels of a namespace, and for a table or view its name as the last one."""

STANDARD: Mapping[str, str] = {
    "create-namespace": "create-namespace",
    "update-namespace": "update-namespace-properties",
    "drop-namespace": "drop-namespace",
    "register-table": "register-table",
    "drop-table": "drop-table",
    "drop-view": "drop-view",
    "rename-table": "rename-table",
    "rename-view": "rename-view",
}
"""The operation types of the proposal, by the kind of the registry's operation. Creations and updates of tables and
views are known by their receipts."""
TYPES = frozenset({*STANDARD.values(), "create-table", "update-table", "create-view", "update-view"})
BY_RECEIPT = frozenset({"create-table", "create-view"})
"""The operations that have no event of their own, since a receipt records the same change."""
UNKNOWN_COMMIT = "x-commit"
"""The type of the event of a commit without a receipt."""
TRANSACTIONS = "/transactions/commit"
_COMMIT_FIELDS: Mapping[str, str] = {
    "metadata_location": "metadata-location",
    "previous_metadata_location": "previous-metadata-location",
    "snapshot_id": "snapshot-id",
    "added_snapshot_ids": "added-snapshot-ids",
    "updates": "update-actions",
    "requirements": "requirement-types",
    "engine": "engine",
}
"""The fields of a receipt that the extension of an event repeats, and their names there."""
_KINDS = frozenset({"updates", "requirements"})
"""The fields of a receipt with a kind for each update or requirement, of which there may be thousands."""


def event_of_commit(id_: str, entity: str | None, receipt: JsonObject) -> JsonObject:
    """Returns the event with this id of a commit to an entity: the creation or update of a table or view. `receipt` has
    the field names of the current version; without a receipt it has the metadata file alone, and the event no name.
    Raises `InternalError` for a corrupt receipt."""
    kind = "view" if receipt.get("entity_type") == "view" else "table"
    operation: JsonObject = {"operation-type": UNKNOWN_COMMIT}
    if "namespace" in receipt:
        action = "create" if receipt.get("previous_metadata_location") is None else "update"
        operation = {"operation-type": f"{action}-{kind}", "identifier": _identifier(receipt)}
    if receipt.get(f"{kind}_uuid") is not None:
        operation[f"{kind}-uuid"] = receipt[f"{kind}_uuid"]
    # How many tables a transaction changed is in no receipt.
    counted = "request" in receipt and not _is_of_transaction(receipt)
    attempt = receipt.get("attempt")
    return {
        "event-id": id_,
        **({} if attempt is None else {"request-id": attempt}),
        **({"request-event-count": 1} if counted else {}),
        "timestamp-ms": integer(receipt, "metadata_ms"),
        "actor": _actor(receipt),
        "operation": operation,
        "arco": {"entity": entity, **_commit(receipt)},
    }


def event_of_operation(operation: JsonObject, at_ms: int | None) -> JsonObject | None:
    """Returns the event of an operation of the registry that was made at `at_ms`, in milliseconds since 1970; None for
    one that is about no name, a grant or an attachment of a policy, and for one that a receipt records."""
    kind = str(operation.get("kind"))
    if kind in BY_RECEIPT or "namespace" not in operation or "role" in operation or "target" in operation:
        return None
    made: JsonObject = {"operation-type": STANDARD.get(kind, f"x-{kind}")}
    to = mapping(operation, "to")
    if to:
        made |= {"source": _identifier(operation), "destination": _identifier(to)}
    elif operation.get("name") is None:
        made["namespace"] = [*texts(operation, "namespace")]
    else:
        made["identifier"] = _identifier(operation)
    if kind == "drop-table" and isinstance(operation.get("purge"), bool):
        made["purge"] = operation["purge"]
    return {
        "event-id": operation.get("id"),
        "request-id": operation.get("id"),
        "request-event-count": 1,
        **({} if at_ms is None else {"timestamp-ms": at_ms}),
        "actor": _actor(operation),
        "operation": made,
        "arco": {
            name.replace("_", "-"): operation[name]
            for name in ("entity", "metadata_location")
            if operation.get(name) is not None
        },
    }


def _commit(receipt: JsonObject) -> JsonObject:
    """Returns the fields of a receipt that the extension of an event repeats, without empty ones; of updates and
    requirements each name once, in order."""
    found: JsonObject = {}
    for field, name in _COMMIT_FIELDS.items():
        value = receipt.get(field)
        if isinstance(value, list):
            value = [*dict.fromkeys(texts(receipt, field))] if field in _KINDS else value
        if value not in (None, [], {}):
            found[name] = value
    return found


def _identifier(record: JsonObject) -> JsonObject:
    """Returns the name of a table or view as Iceberg writes it."""
    return {"namespace": [*texts(record, "namespace")], "name": record.get("name")}


def _actor(record: JsonObject) -> JsonObject:
    """Returns who made a change, and through which client, from its record: the fields `principal`, `session` and
    `source`, as far as the record has them."""
    return {name: record[name] for name in ("principal", "session", "source") if record.get(name) is not None}


def _is_of_transaction(receipt: JsonObject) -> bool:
    """Whether a receipt is of a request that may have changed several tables."""
    return (optional_text(mapping(receipt, "request"), "path") or "").endswith(TRANSACTIONS)


def levels_in(event: JsonObject) -> Sequence[Levels]:
    """Returns the names that an event is about, each with its levels; of a rename both names, and of an event without a
    name an empty one."""
    made = mapping(event, "operation")
    named = [mapping(made, field) for field in ("identifier", "source", "destination") if field in made]
    if not named:
        return [texts(made, "namespace")]
    return [(*texts(each, "namespace"), str(each.get("name"))) for each in named]


def object_type_of(event: JsonObject) -> str:
    """Returns the type of the object that an event is about: `view` if the operation's type ends with `-view`,
    `namespace` for a namespace alone, else `table`: also for generic tables, semantic models, policies, the undrop of a
    view, and events without a name."""
    kind = str(mapping(event, "operation").get("operation-type"))
    if kind.endswith("-view"):
        return "view"
    return "namespace" if "namespace" in mapping(event, "operation") else "table"


def without_names(event: JsonObject, hidden: Sequence[Levels]) -> JsonObject:
    """Returns the event of a rename without those of its names that are hidden from the reader."""
    made = {
        field: value
        for field, value in mapping(event, "operation").items()
        if not (isinstance(value, dict) and (*texts(value, "namespace"), str(value.get("name"))) in hidden)
    }
    return {**event, "operation": made}
