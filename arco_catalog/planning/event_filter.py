"""Which events a request or a subscription selects, in the form of a proposal for Iceberg's REST specification
(docs/decisions/0111-events-follow-a-proposal.md)."""

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import ANY, LONG, STRING, Fields, Shape, T, list_of, one_of
from arco_catalog.planning.events import Levels, levels_in, object_type_of
from arco_catalog.state.fields import mapping
from storage_backends.lazy_dataclass import dataclass

MAX_CONDITIONS = 1_000
"""The maximum number of names, of uuids and of operation types."""
OBJECT_TYPES = ("namespace", "table", "view")
FIELDS = frozenset(
    {
        "continuation-token",
        "page-size",
        "since-timestamp-ms",
        "operation-types",
        "catalog-objects-by-name",
        "catalog-objects-by-uuid",
        "object-types",
        "custom-filters",
    }
)
"""The fields of a request."""
ALWAYS_SELECTED = frozenset({"x-gap", "x-restored"})
"""The types of events that every filter selects, since changes which it selects may be missing there, or undone."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Selects events: those that satisfy all conditions, each of which is None if every event does. An event without a
    time satisfies `since_ms`, and events of the types in `ALWAYS_SELECTED` are always selected.

    `names` are names of tables and views, and namespaces, which select all that is in them, at any depth.
    """

    operation_types: frozenset[str] | None = None
    names: frozenset[Levels] | None = None
    uuids: frozenset[str] | None = None
    object_types: frozenset[str] | None = None
    since_ms: int | None = None

    def selects(self, event: JsonObject) -> bool:
        """Whether the filter selects an event. Every filter selects the events of the types in `ALWAYS_SELECTED`, and
        an event without a time satisfies the condition on times."""
        made, at_ms = mapping(event, "operation"), event.get("timestamp-ms")
        return made.get("operation-type") in ALWAYS_SELECTED or (
            (self.operation_types is None or made.get("operation-type") in self.operation_types)
            and (self.names is None or any(self._contains(levels) for levels in levels_in(event)))
            and (self.uuids is None or not self.uuids.isdisjoint({made.get("table-uuid"), made.get("view-uuid")}))
            and (self.object_types is None or object_type_of(event) in self.object_types)
            and (self.since_ms is None or not isinstance(at_ms, int) or at_ms >= self.since_ms)
        )

    def _contains(self, levels: Levels) -> bool:
        """Whether one of the names is this one, or that of a namespace around it."""
        return self.names is not None and any(levels[:count] in self.names for count in range(1, len(levels) + 1))


def read_filter(fields: Fields) -> EventFilter:
    """Returns which events the body of a request, or a subscription, selects. Raises `BadRequest` for an invalid
    body, for a field that is not in `FIELDS`, and for a custom filter, of which this catalog has none."""
    unknown = sorted(fields.values.keys() - FIELDS)
    if unknown:
        raise BadRequest(
            f"Invalid {fields.at}: unknown field {unknown[0][:64]!r}, which may be a filter: "
            f"the fields are {', '.join(sorted(FIELDS))}"
        )
    if fields.optional("custom-filters", ANY):
        raise BadRequest(f"Invalid {fields.at}.custom-filters: this catalog has only the filters of the proposal")
    names = _some(fields, "catalog-objects-by-name", list_of(STRING))
    if names is not None and not all(names):
        raise BadRequest(f"Invalid {fields.at}.catalog-objects-by-name: a name must have at least one level")
    types = _some(fields, "operation-types", STRING)
    uuids = _some(fields, "catalog-objects-by-uuid", STRING)
    objects = _some(fields, "object-types", one_of(*OBJECT_TYPES))
    return EventFilter(
        operation_types=None if types is None else frozenset(types),
        names=None if names is None else frozenset(map(tuple, names)),
        uuids=None if uuids is None else frozenset(uuids),
        object_types=None if objects is None else frozenset(objects),
        since_ms=fields.optional("since-timestamp-ms", LONG),
    )


def _some(fields: Fields, name: str, item: Shape[T]) -> list[T] | None:
    """Returns a list of conditions, None if there is none. Raises `BadRequest` for a list that is too long."""
    found = fields.optional(name, list_of(item))
    if found is not None and len(found) > MAX_CONDITIONS:
        raise BadRequest(f"Invalid {fields.at}.{name}: it has more than {MAX_CONDITIONS:,} items")
    return found
