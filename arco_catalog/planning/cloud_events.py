"""Events in the form of CloudEvents 1.0 (https://github.com/cloudevents/spec, JSON format): pure functions."""

import json
from datetime import UTC, datetime
from urllib.parse import quote

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.events import levels_in
from arco_catalog.state.fields import mapping

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
SEQUENCE_DIGITS = 20
"""The sequence attribute is padded to so many digits, since its values are compared as texts."""


def cloud_event(event: JsonObject, number: int, warehouse: str) -> JsonObject:
    """Returns the CloudEvent of an event that has this number in the feed of a catalog. `partitionkey` and `sequence`
    are extensions that CloudEvents documents: events of one table or view have one key, in the order of sequences. The
    subject, the time and the key are left out if the event has none."""
    kind = str(mapping(event, "operation").get("operation-type"))
    entity, at_ms = mapping(event, "arco").get("entity"), event.get("timestamp-ms")
    subject = "/".join(quote(level, safe="") for level in levels_in(event)[-1])
    return {
        "specversion": "1.0",
        "id": event.get("event-id"),
        "source": f"/v1/{quote(warehouse, safe='')}",
        "type": f"arco.{kind}",
        **({"subject": subject} if subject else {}),
        **({"time": _timestamp(at_ms)} if isinstance(at_ms, int) else {}),
        "datacontenttype": "application/json",
        "sequence": str(number).zfill(SEQUENCE_DIGITS),
        **({"partitionkey": entity} if isinstance(entity, str) else {}),
        "data": event,
    }


def encode(event: JsonObject) -> bytes:
    """Returns the bytes of a CloudEvent, as they are signed and sent: in ASCII, since SQS does not take all characters
    that names may have."""
    return json.dumps(event, sort_keys=True, separators=(",", ":")).encode()


def _timestamp(at_ms: int) -> str:
    """Returns a time in milliseconds since 1970 in the form of RFC 3339."""
    time = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03}Z"
