"""An OpenLineage event as rows of `lineage_events`, and rows as events again."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import cast

from arco_catalog.iceberg.errors import BadRequest, InternalError
from arco_catalog.state.lineage import Dataset, StoredEvent, read_event
from reconciler.compact.values import long_of, nearest_time
from reconciler.compact.versions import milliseconds
from reconciler.system.definition import DAY_MS, Row

COLUMNS = (
    *(
        "event",
        "received_on",
        "happened_at",
        "state",
        "run_id",
        "parent_run_id",
        "root_run_id",
        "job_namespace",
        "job_name",
        "principal",
    ),
    *("role", "dataset_namespace", "dataset_name", "further_names", "further_namespaces", "snapshot_id"),
)
"""The columns of `lineage_events` that an event is made of again."""
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Named:
    """A dataset as an event names it, by other names too, each in its namespace, and the snapshot that was read or
    written."""

    namespace: str
    name: str
    further: tuple[tuple[str, str], ...] = ()
    snapshot_id: int | None = None

    def __str__(self) -> str:
        return f"{self.namespace} {self.name}"


@dataclass(slots=True)
class RunEvent:
    """What one event says of a run."""

    event: str
    received_ms: int
    happened_ms: int
    state: str | None
    run: str
    parent: str | None = None
    job_namespace: str | None = None
    job_name: str | None = None
    principal: str | None = None
    inputs: list[Named] = field(default_factory=list)
    outputs: list[Named] = field(default_factory=list)
    root: str | None = None


def event_rows(stored: StoredEvent, name: str, day: date, batch: int) -> Iterator[Row]:
    """The rows of an event that came on a day. Raises `InternalError` for one that is none any more."""
    try:
        said = read_event(stored.event)
    except BadRequest as error:
        raise InternalError(f"OpenLineage event {name}: {error}") from error
    whole: Row = {
        "event": name,
        "received_on": (day - _EPOCH).days * DAY_MS,
        "happened_at": nearest_time(said.time_ms),
        "state": said.state,
        "run_id": said.run,
        "parent_run_id": said.parent,
        "root_run_id": said.root,
        "job_namespace": None if said.job is None else said.job.namespace,
        "job_name": None if said.job is None else said.job.name,
        "principal": stored.principal,
        "batch": batch,
    }
    for role, datasets in (("input", said.inputs), ("output", said.outputs)):
        for dataset in datasets:
            yield {**whole, "role": role, **_dataset_columns(dataset)}
    if not said.inputs and not said.outputs:
        yield whole


def _dataset_columns(dataset: Dataset) -> Row:
    return {
        "dataset_namespace": dataset.name.namespace,
        "dataset_name": dataset.name.name,
        "further_names": [name.name for name in dataset.also],
        "further_namespaces": [name.namespace for name in dataset.also],
        "snapshot_id": long_of(dataset.snapshot_id),
    }


def _texts(value: object) -> Sequence[str]:
    """What a list of texts holds, which rows of earlier versions lack."""
    return cast("Sequence[str] | None", value) or ()


def run_events(rows: Iterable[Mapping[str, object]]) -> Sequence[RunEvent]:
    """The events of runs that some rows of `lineage_events` tell. Events of no run are left out."""
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
                Named(
                    cast(str, row["dataset_namespace"]),
                    cast(str, row["dataset_name"]),
                    tuple(zip(_texts(row["further_namespaces"]), _texts(row["further_names"]), strict=False)),
                    cast("int | None", row["snapshot_id"]),
                )
            )
    return [*found.values()]
