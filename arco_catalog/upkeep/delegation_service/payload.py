"""Reads a submission to the delegation service, and makes the first version of its task."""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.iceberg.shapes import INT, NAME, OBJECT, STRING, STRINGS, Fields, ShapeError, list_of, one_of
from arco_catalog.state.characters import first_control_character
from arco_catalog.state.fields import optional_text, text, texts
from arco_catalog.state.task import TABLE_PURGE, Task, table_identity

SYNCHRONOUS_TABLE_PURGE = "SYNCHRONOUS_TABLE_PURGE"
MAX_BYTES = 64 << 10
"""Maximum size of the content, which each version of the task repeats, and of `config`, which stays in memory."""
TASK_TYPES: Mapping[str, str] = {SYNCHRONOUS_TABLE_PURGE: TABLE_PURGE}
"""The type of the task that each operation makes."""


def _PLAIN(value: JsonValue) -> str:  # noqa: N802 - shapes are constants to their users
    """Returns a JSON string that is a name and has no control characters, which separate names in the catalog's own
    keys. Raises `ShapeError` for any other value."""
    if first_control_character(NAME(value)) is not None:
        raise ShapeError("the name must not have control characters")
    return NAME(value)


@dataclass(frozen=True, slots=True)
class TableIdentity:
    """The identity of a table in the caller's catalog: its id, and the names of catalog, namespace and table."""

    entity: str
    catalog: str
    namespace: tuple[str, ...]
    name: str

    def to_json(self) -> JsonObject:
        """Returns the fields of a `TableIdentity` as the service's API has them."""
        return {
            "table_entity_id": self.entity,
            "catalog_name": self.catalog,
            "namespace_levels": [*self.namespace],
            "table_name": self.name,
        }


@dataclass(frozen=True, slots=True)
class DelegatedPurge:
    """A table to purge, as its catalog submits it: the location of its latest metadata file, its location and its uuid.
    `config` has the properties of Iceberg's FileIO that open its files; it is never stored, logged or compared."""

    operation: str
    realm: str
    identity: TableIdentity
    metadata_location: str
    location: str
    table_uuid: str
    properties: Mapping[str, str]
    labels: JsonObject
    """The caller's own fields about its request: its time, and the id in the caller's logs."""
    config: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def parse(cls, body: JsonObject) -> Self:
        """Reads a `TaskPayload` of the service's API. Raises an error if a required field is missing, a field is
        invalid, the operation is unknown, or `config`, or all other fields that are kept, have more than `MAX_BYTES`
        bytes; fields that are not kept, such as most of `metadata`, don't count."""
        request = Fields(body)
        common = Fields(request.required("common_payload", OBJECT), "request.common_payload")
        operation = common.required("operation_type", one_of(*TASK_TYPES))
        named = {name: common.optional(name, STRING) for name in ("request_timestamp_utc", "polaris_correlation_id")}
        at = "request.operation_parameters"
        parameters = Fields(request.required("operation_parameters", OBJECT), at)
        identity = Fields(parameters.required("table_identity", OBJECT), f"{at}.table_identity")
        metadata = Fields(parameters.required("metadata", OBJECT), f"{at}.metadata")
        metadata.required("format-version", INT)
        purge = cls(
            operation=operation,
            realm=common.required("realm_identifier", STRING),
            identity=TableIdentity(
                identity.required("table_entity_id", _PLAIN),
                identity.required("catalog_name", STRING),
                tuple(identity.required("namespace_levels", list_of(_PLAIN))),
                identity.required("table_name", _PLAIN),
            ),
            metadata_location=parameters.required("metadata_location", NAME),
            location=metadata.required("location", NAME),
            table_uuid=metadata.required("table-uuid", NAME),
            properties=parameters.optional("properties", STRINGS) or {},
            labels={name: label for name, label in named.items() if label is not None},
            config=parameters.required("config", STRINGS),
        )
        rest, config = len(dumps([purge.content, purge.labels])), len(dumps({**purge.config}))
        if rest > MAX_BYTES or config > MAX_BYTES:
            raise BadRequest(
                f"Invalid request: operation_parameters.config has {config:,} bytes, and the rest {rest:,}, expected "
                f"at most {MAX_BYTES:,} each"
            )
        return purge

    @property
    def correlation_id(self) -> str | None:
        """The id by which the caller finds its request in logs; None if the request has none."""
        return optional_text(self.labels, "polaris_correlation_id")

    @property
    def content(self) -> JsonObject:
        """The fields that identify a purge: the request without credentials and without labels, which differ between
        repeated submissions of the same purge."""
        return {
            "operation_type": self.operation,
            "realm_identifier": self.realm,
            "table_identity": self.identity.to_json(),
            "metadata_location": self.metadata_location,
            "metadata": {"location": self.location, "table-uuid": self.table_uuid},
            "properties": {**self.properties},
        }

    def task_id(self, caller: str) -> str:
        """Returns the id of the task for this purge: a hash of the content and the caller, so each submission of this
        purge by this caller has the same id."""
        digest = hashlib.sha256(dumps({"caller": caller, **self.content}, sort_keys=True)).digest()
        return str(uuid.UUID(bytes=digest[:16], version=5))

    def submitted(self, caller: str, *, record: str, at_ms: int) -> Task:
        """Returns the first version of the task that executes this purge at once: the request without credentials, and
        the caller. `record` is a new id for that version, `at_ms` the time of the submission."""
        payload: JsonObject = {
            "common_payload": {"operation_type": self.operation, "realm_identifier": self.realm, **self.labels},
            "operation_parameters": {
                "table_identity": self.identity.to_json(),
                "metadata_location": self.metadata_location,
                "metadata": {"location": self.location, "table-uuid": self.table_uuid},
                "properties": {**self.properties},
            },
            "submitted_by": caller,
        }
        return Task.submitted(
            record=record,
            task=self.task_id(caller),
            kind=TASK_TYPES[self.operation],
            payload=payload,
            at_ms=at_ms,
            not_before_ms=at_ms,
        )


def submitter_of(task: Task) -> str:
    """Returns the principal that submitted a delegated task."""
    return text(task.payload, "submitted_by")


def table_of(task: Task) -> TableIdentity:
    """Returns the identity of the table that a delegated task purges, from the task's payload."""
    identity = table_identity(task.payload)
    return TableIdentity(
        text(identity, "table_entity_id"),
        text(identity, "catalog_name"),
        texts(identity, "namespace_levels"),
        text(identity, "table_name"),
    )
