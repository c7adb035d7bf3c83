"""Up to where the pipeline has read: what it is yet to read is not collected (docs/design/collection.md#rule-14).

Its own tables say so. A catalog without these tables has no pipeline, and nothing to wait for.
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
    """What the pipeline has read: all days before `closed_before`, but for those that are `marked`, and all commits of
    the registry up to `sequence`. None is where there is no pipeline."""

    closed_before: date | None = None
    marked: frozenset[date] = frozenset()
    sequence: int | None = None

    def has_read_day(self, day: date | None) -> bool:
        """Whether the receipts of a day may go, as far as the pipeline is concerned."""
        if self.closed_before is None:
            return True
        return day is not None and day < self.closed_before and day not in self.marked

    def has_read_commit(self, sequence: int) -> bool:
        """The same for a commit of the registry."""
        return self.sequence is None or sequence <= self.sequence


async def read_progress(run: Run) -> PipelineProgress:
    """How far the pipeline is. Where its tables can't be read, or have no batch yet, nothing counts as read. Raises
    `StoreError`."""
    of_commits = await run.judged("the pipeline's commits", _table(run, COMMITS))
    of_events = await run.judged("the pipeline's catalog_events", _table(run, CATALOG_EVENTS))
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
    """What is known of one table of the pipeline."""

    exists: bool
    properties: JsonObject


async def _table(run: Run, name: str) -> _Table:
    """A table of `system`. Raises `CatalogError`."""
    state = run.session.state
    entry = await relation_entry(state, (await state.head()).index, (NAMESPACE,), name)
    pointer = None if entry is None else await state.pointer(entry.entity)
    if pointer is None:
        return _Table(entry is not None, {})
    where = (await resolve_for_read(state, pointer)).metadata.location
    return _Table(True, await run.session.files.extract(where, lambda document: mapping(document, "properties")))


def _date(said: JsonValue) -> date:
    """A day; the first there is, where none is said, or nothing that is one."""
    try:
        return date.fromisoformat(said) if isinstance(said, str) else date.min
    except ValueError:
        return date.min


def _number(said: JsonValue) -> int:
    return int(said) if isinstance(said, str) and said.isascii() and said.isdigit() else 0
