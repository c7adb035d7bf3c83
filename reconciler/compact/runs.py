"""Makes the rows of the system table `lineage_events` for an OpenLineage event, and events from rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import cast

from arco_catalog.iceberg.errors import BadRequest, InternalError
from arco_catalog.planning.lineage_datasets import DatasetRef
from arco_catalog.planning.lineage_edges import RunEvent
from arco_catalog.state.lineage import Dataset, StoredEvent, read_event
from reconciler.compact.values import long_of, nearest_time
from reconciler.compact.versions import milliseconds
from reconciler.system.definition import DAY_MS, Row

COLUMNS = (
    *("event", "received_on", "happened_at", "state", "run_id", "parent_run_id", "root_run_id"),
    *("job_namespace", "job_name", "principal"),
    *("role", "dataset_namespace", "dataset_name", "further_names", "further_namespaces", "snapshot_id"),
)
"""The columns of `lineage_events` from which `run_events` makes events."""
_EPOCH = date(1970, 1, 1)


def event_rows(stored: StoredEvent, name: str, day: date, batch: int) -> Iterator[Row]:
    """Iterates over the rows of `lineage_events` for an OpenLineage event that was received on `day`: one for each
    dataset, or one if it has none. Raises `InternalError` if the stored event is not valid."""
    try:
        parsed = read_event(stored.event)
    except BadRequest as error:
        raise InternalError(
            f"the stored OpenLineage event {name} is not valid, so it gets no rows in system.lineage_events: {error}"
        ) from error
    shared: Row = {
        "event": name,
        "received_on": (day - _EPOCH).days * DAY_MS,
        "happened_at": nearest_time(parsed.time_ms),
        "state": parsed.state,
        "run_id": parsed.run,
        "parent_run_id": parsed.parent,
        "root_run_id": parsed.root,
        "job_namespace": None if parsed.job is None else parsed.job.namespace,
        "job_name": None if parsed.job is None else parsed.job.name,
        "principal": stored.principal,
        "batch": batch,
    }
    for role, datasets in (("input", parsed.inputs), ("output", parsed.outputs)):
        for dataset in datasets:
            yield {**shared, "role": role, **_dataset_columns(dataset)}
    if not parsed.inputs and not parsed.outputs:
        yield shared


def _dataset_columns(dataset: Dataset) -> Row:
    """Returns the columns of `lineage_events` about a dataset."""
    return {
        "dataset_namespace": dataset.name.namespace,
        "dataset_name": dataset.name.name,
        "further_names": [name.name for name in dataset.also],
        "further_namespaces": [name.namespace for name in dataset.also],
        "snapshot_id": long_of(dataset.snapshot_id),
    }


def _texts(value: object) -> Sequence[str]:
    """Returns the strings in a list column of a row; empty for null, which rows of older releases have."""
    return cast("Sequence[str] | None", value) or ()


def run_events(rows: Iterable[Mapping[str, object]]) -> Sequence[RunEvent]:
    """Returns the events in rows of `lineage_events`, which must have the columns `COLUMNS`, in the order of their
    first rows. The rows of an event, one for each dataset, become one value; events that belong to no run are left
    out."""
    found: dict[str, RunEvent] = {}
    for row in rows:
        if row["run_id"] is None:
            continue
        name = cast(str, row["event"])
        event = found.get(name)
        if event is None:
            event = found[name] = RunEvent(
                name,
                milliseconds(cast(datetime, row["received_on"])),
                milliseconds(cast(datetime, row["happened_at"])),
                cast("str | None", row["state"]),
                cast(str, row["run_id"]),
                cast("str | None", row["parent_run_id"]),
                cast("str | None", row["job_namespace"]),
                cast("str | None", row["job_name"]),
                cast("str | None", row["principal"]),
                root=cast("str | None", row["root_run_id"]),
            )
        if row["role"] is not None:
            (event.inputs if row["role"] == "input" else event.outputs).append(
                DatasetRef(
                    cast(str, row["dataset_namespace"]),
                    cast(str, row["dataset_name"]),
                    tuple(zip(_texts(row["further_namespaces"]), _texts(row["further_names"]), strict=False)),
                    cast("int | None", row["snapshot_id"]),
                )
            )
    return [*found.values()]
