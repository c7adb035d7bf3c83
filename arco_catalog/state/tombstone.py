"""The tombstone of a drop that asked for a purge, and what becomes of it (docs/design/purge.md).

dropped -> purging -> purged
dropped <- purging            before anything was deleted
"""

from dataclasses import dataclass

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.borrowed import returned_loans
from arco_catalog.state.entries import purge_began
from arco_catalog.state.fields import integer, optional_text, text, texts
from arco_catalog.state.holds import reclaimed_holds
from arco_catalog.state.index import Edits, Index, Namespace, level, location_key, released_key, tombstone_key
from arco_catalog.state.needs import Needs, Steps

DROPPED, PURGING, PURGED = "dropped", "purging", "purged"


def task_key(task: str) -> str:
    """Key that leads from a task to what it is about."""
    return level("task", ()) + task


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is kept of a table that was dropped."""

    json: JsonObject

    @property
    def namespace(self) -> Namespace:
        return texts(self.json, "namespace")

    @property
    def namespace_entity(self) -> str | None:
        """The id of the namespace that it was dropped from; None in a tombstone older than this field."""
        return optional_text(self.json, "namespace_entity")

    @property
    def name(self) -> str:
        return text(self.json, "name")

    @property
    def entity(self) -> str:
        return text(self.json, "entity")

    @property
    def operation(self) -> str:
        """The drop that left it: its mark is on the pointer."""
        return text(self.json, "operation")

    @property
    def locations(self) -> tuple[str, ...]:
        return texts(self.json, "locations")

    @property
    def made(self) -> str | None:
        """The location that the catalog made for this table, if there is one."""
        return self.locations[0] if self.json.get("made") is True and self.locations else None

    @property
    def borrowed(self) -> tuple[str, ...]:
        """Folders outside of these from which its metadata takes files."""
        return texts(self.json, "borrowed")

    @property
    def dropped_ms(self) -> int:
        return integer(self.json, "dropped_ms")

    @property
    def task(self) -> str | None:
        """The task that purges it."""
        return optional_text(self.json, "task")

    @property
    def purge_after_ms(self) -> int:
        """Until when the purge does not begin."""
        return integer(self.json, "purge_after")

    @property
    def state(self) -> str:
        """`dropped`, `purging` or `purged`. An earlier version wrote `purging` without a task at drops that asked for a
        purge: those are plain drops."""
        if purge_began(self.json):
            return PURGING
        return PURGED if self.json.get("state") == PURGED else DROPPED

    @property
    def fence(self) -> int:
        """The version of the task with which the lease began that wrote it last."""
        return integer(self.json, "task_version")

    @property
    def begun_version(self) -> int | None:
        """The version of the task whose lease started the purge; None if an earlier version of this program did."""
        begun = self.json.get("begun_version")
        return begun if isinstance(begun, int) else None

    @property
    def key(self) -> str:
        """Its key in the index."""
        return tombstone_key(self.namespace, self.name, self.entity)

    def begun(self, index: Index, fence: int) -> Steps[Edits]:
        """Edits by which the purge begins: it holds its locations again."""
        held = yield from reclaimed_holds(
            index, self.entity, self.locations, {"state": PURGING, "task": self.task}, name=(*self.namespace, self.name)
        )
        return {**self._with(state=PURGING, task_version=fence, begun_version=fence), **held}

    def fenced(self, fence: int) -> Edits:
        """Edits by which another lease goes on with the purge."""
        return self._with(task_version=fence)

    def returned(self, fence: int) -> Edits:
        """Edits by which a purge that has deleted nothing is given up."""
        holds: Edits = {location_key(location, self.entity): None for location in self.locations}
        return {**self._with(state=DROPPED, task_version=fence), **holds}

    def without_purge(self) -> Edits:
        """Makes a plain drop of one whose purge has deleted no file."""
        assert self.task is not None
        returned: Edits = self.returned(self.fence) if self.state == PURGING else {}
        purge = ("task", "purge_after", "task_version")
        plain = {name: value for name, value in {**self.json, "state": DROPPED}.items() if name not in purge}
        return {**returned, self.key: plain, task_key(self.task): None}

    def is_shared(self, index: Index) -> Steps[bool]:
        """Whether somebody else has named the place that was made for this table: before its drop, as the entry says,
        or since, as the claim on the place does."""
        if self.made is None or self.json.get("shared") is True:
            return self.json.get("shared") is True
        key = released_key(self.made, self.entity)
        yield Needs(keys=[key])
        claim = index.get(key)
        return claim is not None and claim.get("shared") is True

    def released(self, at_ms: int) -> Edits:
        """Edits by which the purge ends: there is nothing at its locations any more."""
        assert self.task is not None
        return {
            **self._with(state=PURGED, purged_ms=at_ms),
            **{location_key(location, self.entity): None for location in self.locations},
            **{released_key(location, self.entity): None for location in self.locations},
            **returned_loans(self.entity, self.borrowed),
            task_key(self.task): None,
        }

    def _with(self, **changes: str | int) -> dict[str, JsonObject | None]:
        return {self.key: {**self.json, **changes}}
