"""How far the pipeline (the job `compact`) has read receipts and registry commits: objects that it has not read are
kept (docs/design/collection.md#rule-14).

The properties of its tables record it. A catalog without these tables has no pipeline, and keeps nothing for it.
"""

from dataclasses import dataclass
from datetime import date

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.protocol.decisions import resolve_for_read
from arco_catalog.protocol.lookup import relation_entry
from arco_catalog.state.fields import mapping
from arco_catalog.state.late_receipts import late_marks
from arco_catalog.state.watermarks import CATALOG_EVENTS, CLOSED_BEFORE, COMMITS, NAMESPACE, REGISTRY_SEQUENCE
from arco_catalog.upkeep.collection.run import Run


@dataclass(frozen=True, slots=True)
class PipelineProgress:
    """How far the pipeline has read: the receipts of all days before `closed_before` except those that are `marked`,
    and the registry's commits up to the sequence number `sequence`. Both are None if there is no pipeline."""

    closed_before: date | None = None
    marked: frozenset[date] = frozenset()
    sequence: int | None = None

    def has_read_day(self, day: date | None) -> bool:
        """Whether the receipts of a day may be deleted as far as the pipeline is concerned: it has read them, or there
        is no pipeline. None stands for an unknown day, which counts as not read."""
        if self.closed_before is None:
            return True
        return day is not None and day < self.closed_before and day not in self.marked

    def has_read_commit(self, sequence: int) -> bool:
        """Whether a registry commit with this sequence number may be deleted as far as the pipeline is concerned: it
        has read the commit, or there is no pipeline."""
        return self.sequence is None or sequence <= self.sequence


async def read_progress(run: Run) -> PipelineProgress:
    """Reads how much the pipeline has read, from the properties of its tables. Nothing counts as read if a table can't
    be read; of a table that is missing alone, or has no batch yet, nothing of its part counts. If both tables are
    missing there is no pipeline, so `closed_before` and `sequence` of the result are None. Raises `StoreError`."""
    of_commits = await run.unless_unreadable("the pipeline's commits", _table(run, COMMITS))
    of_events = await run.unless_unreadable("the pipeline's catalog_events", _table(run, CATALOG_EVENTS))
    if of_commits is None or of_events is None:
        return PipelineProgress(date.min, sequence=0)
    if not of_commits.exists and not of_events.exists:
        return PipelineProgress()
    marks, _ = await late_marks(run.session.state)
    return PipelineProgress(
        _date(of_commits.properties.get(CLOSED_BEFORE)),
        frozenset(mark.day for mark in marks),
        _number(of_events.properties.get(REGISTRY_SEQUENCE)),
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """The properties of a table of the pipeline, and whether the table exists."""

    exists: bool
    properties: JsonObject


async def _table(run: Run, name: str) -> _Table:
    """Reads the properties of the pipeline's table `system.NAME`. A table that the registry does not have counts as
    absent, and one without a pointer has no properties. Raises `CatalogError`, and `StoreError`."""
    state = run.session.state
    entry = await relation_entry(state, (await state.head()).index, (NAMESPACE,), name)
    pointer = None if entry is None else await state.pointer(entry.entity)
    if pointer is None:
        return _Table(entry is not None, {})
    where = (await resolve_for_read(state, pointer)).metadata.location
    return _Table(True, await run.session.files.extract(where, lambda document: mapping(document, "properties")))


def _date(value: JsonValue) -> date:
    """Returns the date in a table property in ISO 8601; `date.min` if the value is missing or no date."""
    try:
        return date.fromisoformat(value) if isinstance(value, str) else date.min
    except ValueError:
        return date.min


def _number(value: JsonValue) -> int:
    """Returns a number in a table property; 0 for any other value."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else 0
