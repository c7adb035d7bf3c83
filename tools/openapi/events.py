"""The part of the OpenAPI document about the events of a catalog, which follows a proposal for Iceberg's specification
(docs/decisions/0111-events-follow-a-proposal.md)."""

from collections.abc import Mapping

from arco_catalog.http.events import MAX_TOKEN
from arco_catalog.operations.events import MAX_EVENTS
from arco_catalog.planning.event_filter import MAX_CONDITIONS, OBJECT_TYPES
from arco_catalog.planning.events import TYPES
from tools.openapi.builders import INTEGER, TAG, TEXT, json_content, list_of, nullable, parameter_references, reference
from tools.openapi.specifications import Json

_LEVELS: Json = {"type": "array", "minItems": 1, "items": TEXT}
_MILLISECONDS: Json = {"description": "In milliseconds since 1970.", "type": "integer", "format": "int64"}


def _conditions(items: Json, description: str) -> Json:
    return {"description": description, "type": ["array", "null"], "maxItems": MAX_CONDITIONS, "items": items}


OPERATIONS: Mapping[str, Json] = {
    "POST /v1/{prefix}/events": {
        "tags": [TAG],
        "operationId": "queryEvents",
        "parameters": parameter_references("prefix"),
        "requestBody": json_content(reference("schemas", "QueryEventsRequest")),
        "responses": {"200": json_content(reference("schemas", "QueryEventsResponse"))},
    }
}

SCHEMAS: Mapping[str, Json] = {
    "QueryEventsRequest": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "continuation-token": {
                "description": "Of the last response; without it, events are read from the beginning of the feed.",
                "type": ["string", "null"],
                "maxLength": MAX_TOKEN,
            },
            "page-size": {
                "description": f"A response has at most {MAX_EVENTS} events.",
                "type": ["integer", "null"],
                "format": "int32",
                "minimum": 1,
            },
            "since-timestamp-ms": {
                "description": "Leaves out earlier events. In milliseconds since 1970.",
                "type": ["integer", "null"],
                "format": "int64",
            },
            "operation-types": _conditions(TEXT, "Selects events of these types."),
            "catalog-objects-by-name": _conditions(
                _LEVELS, "Selects events of these tables and views, and of namespaces with all that is in them."
            ),
            "catalog-objects-by-uuid": _conditions(TEXT, "Selects events with these uuids of tables and views."),
            "object-types": _conditions({"enum": [*OBJECT_TYPES]}, "Selects events of objects of these types."),
            "custom-filters": {"description": "There are none.", "type": ["object", "null"], "maxProperties": 0},
        },
    },
    "CatalogOperation": {
        "description": "What an event is about. Fields that the record of the change lacks are left out.",
        "type": "object",
        "required": ["operation-type"],
        "properties": {
            "operation-type": {
                "anyOf": [{"enum": sorted(TYPES)}, {"type": "string", "pattern": "^x-[a-zA-Z0-9_.-]+$"}]
            },
            "identifier": reference("schemas", "TableIdentifier"),
            "source": reference("schemas", "TableIdentifier"),
            "destination": reference("schemas", "TableIdentifier"),
            "namespace": reference("schemas", "Namespace"),
            "table-uuid": TEXT,
            "view-uuid": TEXT,
            "purge": {"type": "boolean"},
        },
    },
    "EventOfArco": {
        "description": "What the catalog knows of a change beyond the proposal.",
        "type": "object",
        "properties": {
            "entity": {"description": "The id of the object, which no rename changes.", "type": "string"},
            "metadata-location": TEXT,
            "previous-metadata-location": TEXT,
            "snapshot-id": nullable(INTEGER),
            "added-snapshot-ids": list_of(INTEGER),
            "update-actions": list_of(TEXT),
            "requirement-types": list_of(TEXT),
        },
    },
    "Event": {
        "type": "object",
        "required": ["event-id", "operation"],
        "properties": {
            "event-id": {"description": "Equal wherever the event is read or sent again.", "type": "string"},
            "request-id": {"description": "Equal for all events of one request.", "type": "string"},
            "request-event-count": INTEGER,
            "timestamp-ms": _MILLISECONDS,
            "actor": {"type": "object"},
            "operation": reference("schemas", "CatalogOperation"),
            "arco": reference("schemas", "EventOfArco"),
        },
    },
    "QueryEventsResponse": {
        "type": "object",
        "required": ["continuation-token", "events"],
        "properties": {
            "continuation-token": {"description": "For the next request, also if there are no events.", **TEXT},
            "events": list_of(reference("schemas", "Event")),
        },
    },
}
