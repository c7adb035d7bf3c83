"""Finds which runs have no edge in a graph of lineage, and why, within limits (docs/design/lineage.md#rule-15)."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.lineage_events import LAST_DAYS, EventReader, count_named
from arco_catalog.planning.lineage_graph import LineageGraph, LineageQuery
from arco_catalog.planning.lineage_names import digest_in, table_tags
from arco_catalog.planning.lineage_reasons import LEFT_OUT, LeftOutEvent, NoEdge, RunWithoutEdge, runs_without_edges
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.paths import day_of
from arco_catalog.state.registry import RegistryState

MAX_OTHERS = 40
"""Maximum number of events that are read although their tags show that they are not about the graph's tables."""
MAX_LISTED = 50
"""Maximum number of runs and events that an answer lists; it counts all."""
EARLIER_DAYS = 14
"""Of how many days before the last ones events are counted by their names, and not read."""
RUN_BYTES = 1_000
"""An estimate of the size of a run's events, by which long computations leave the event loop."""


async def explain_missing(
    session: Session, head: RegistryState, query: LineageQuery, graph: LineageGraph, events: EventReader
) -> JsonObject | None:
    """Reads up to `MAX_OTHERS` further events, and returns, with their reasons, the events that were left out and then
    the runs without an edge in a graph, `MAX_LISTED` of them together, a count of all for each reason, and on which of
    the days of `_earlier` events came that may name the table in the middle. Returns None for a caller who may not read
    the properties of all tables: a reason would show which names are names of tables. Raises `StoreError`, and
    `OutOfMemory`."""
    if not await carry_out(session.state, head.index, query.may_know(None)):
        return None
    others = await events.read_others(MAX_OTHERS)
    size = RUN_BYTES * (len(others) + len(events.events))
    found = await carry_out(session.state, head.index, runs_without_edges(head.index, query, graph, others), size)
    root = query.root
    earlier = await count_named(
        session, _earlier(session, events.days), table_tags(root.namespace, root.name, root.locations)
    )
    reasons = Counter([*(run.reason.value for run in found), *(event.reason.value for event in events.left_out)])
    found.sort(key=lambda run: run.reason is NoEdge.OTHER_TABLES)
    described = [*(_left_out(event) for event in events.left_out), *(_run(run) for run in found)]
    return {
        "runs": [*described[:MAX_LISTED]],
        "reasons": {**reasons},
        "events": len(events.events) + len(others) + len(events.left_out),
        "earlier": [{"day": day.isoformat(), "events": count} for day, count in sorted(earlier.items())],
    }


def _earlier(session: Session, searched: Sequence[date]) -> Sequence[date]:
    """Returns the days, of the `EARLIER_DAYS` before the last `LAST_DAYS`, that were not searched, latest first."""
    today = day_of(session.now_ms())
    days = (today - timedelta(days=LAST_DAYS + back) for back in range(EARLIER_DAYS))
    return [day for day in days if day not in searched]


def _run(run: RunWithoutEdge) -> JsonObject:
    """Returns the JSON of a run without an edge, and why it has none."""
    event = run.event
    return {
        "event": digest_in(event.event),
        "events": run.events,
        "at-ms": event.received_ms,
        "state": event.state,
        "run-id": event.run,
        "job": {"namespace": event.job_namespace, "name": event.job_name},
        "principal": event.principal,
        "reason": run.reason.value,
        "message": run.sentence,
    }


def _left_out(event: LeftOutEvent) -> JsonObject:
    """Returns the JSON of an event that was left out, and why."""
    nothing: dict[str, JsonValue] = dict.fromkeys(("state", "run-id", "job", "principal"))
    return {
        "event": event.event,
        "events": 1,
        "at-ms": event.received_ms,
        **nothing,
        "reason": event.reason.value,
        "message": LEFT_OUT[event.reason],
    }
