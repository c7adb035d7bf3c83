"""The tombstone of a dropped table or view, and the states of the purge that a drop may request (docs/design/purge.md).

dropped -> purging -> purged
dropped <- purging            only before a file was deleted
"""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.borrowed import returned_loans
from arco_catalog.state.entries import purge_began
from arco_catalog.state.fields import integer, optional_text, text, texts
from arco_catalog.state.holds import reclaimed_holds
from arco_catalog.state.index import Edits, Index, Namespace, level, location_key, released_key, tombstone_key
from arco_catalog.state.needs import Needs, Steps
from storage_backends.lazy_dataclass import dataclass

DROPPED, PURGING, PURGED = "dropped", "purging", "purged"


def task_key(task: str) -> str:
    """Returns the index key of the entry that leads from a purge's task to its tombstone."""
    return level("task", ()) + task


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The registry's entry of a dropped table, view or other relation."""

    json: JsonObject

    @property
    def namespace(self) -> Namespace:
        """The namespace in which the relation was at the drop."""
        return texts(self.json, "namespace")

    @property
    def namespace_entity(self) -> str | None:
        """The id that the table's namespace had when the table was dropped; None in a tombstone older than this
        field."""
        return optional_text(self.json, "namespace_entity")

    @property
    def name(self) -> str:
        """The name that the relation had at the drop. Raises `InternalError` if the tombstone has none."""
        return text(self.json, "name")

    @property
    def entity(self) -> str:
        """The entity id of the dropped relation. Raises `InternalError` if the tombstone has none."""
        return text(self.json, "entity")

    @property
    def operation(self) -> str:
        """The id of the drop that made this tombstone. The drop also puts it as a mark on the pointer, if the relation
        has one. Raises `InternalError` if the tombstone has none."""
        return text(self.json, "operation")

    @property
    def locations(self) -> tuple[str, ...]:
        """The normalised locations that the relation held at the drop; empty if it held none."""
        return texts(self.json, "locations")

    @property
    def made(self) -> str | None:
        """The location that the catalog generated for this table alone, None if there is none."""
        return self.locations[0] if self.json.get("made") is True and self.locations else None

    @property
    def borrowed(self) -> tuple[str, ...]:
        """Folders outside of the table's locations from which its metadata takes files (state/borrowed.py)."""
        return texts(self.json, "borrowed")

    @property
    def dropped_ms(self) -> int:
        """The time of the drop in milliseconds since 1970. Raises `InternalError` if the tombstone has none."""
        return integer(self.json, "dropped_ms")

    @property
    def task(self) -> str | None:
        """The id of the task that purges the table, None if there is none."""
        return optional_text(self.json, "task")

    @property
    def purge_after_ms(self) -> int:
        """The earliest time at which the purge begins, in milliseconds since 1970, by the store's clock. Raises
        `InternalError` if the tombstone has none, as after a drop without a purge."""
        return integer(self.json, "purge_after")

    @property
    def state(self) -> str:
        """`dropped`, `purging` or `purged`. An earlier version has written `purging` without a task for drops with a
        purge, which it never purged: such a tombstone is `dropped`."""
        if purge_began(self.json):
            return PURGING
        return PURGED if self.json.get("state") == PURGED else DROPPED

    @property
    def fence(self) -> int:
        """The number of the version of the purge's task with which that lease began under which the tombstone was last
        written; 0 if no lease has written it."""
        return integer(self.json, "task_version") if "task_version" in self.json else 0

    @property
    def begun_version(self) -> int | None:
        """The number of the version of the purge's task with which that lease began under which the purge began last;
        None if no purge has begun, or an older version of this program began it."""
        begun = self.json.get("begun_version")
        return begun if isinstance(begun, int) else None

    @property
    def key(self) -> str:
        """The key of the tombstone in the index."""
        return tombstone_key(self.namespace, self.name, self.entity)

    def begun(self, index: Index, fence: int) -> Steps[Edits]:
        """Returns the index changes by which the purge of the dropped table begins: its tombstone is in the state
        `PURGING`, and the table holds its locations. `fence` is the number of the task's version with which the lease
        began; the tombstone keeps it to fence earlier leases."""
        held = yield from reclaimed_holds(
            index, self.entity, self.locations, {"state": PURGING, "task": self.task}, name=(*self.namespace, self.name)
        )
        return {**self._with(state=PURGING, task_version=fence, begun_version=fence), **held}

    def fenced(self, fence: int) -> Edits:
        """Returns the index changes by which another lease of the task continues the purge: the tombstone keeps
        `fence`, the number of the task's version with which that lease began, so that earlier leases change nothing
        more."""
        return self._with(task_version=fence)

    def returned(self, fence: int) -> Edits:
        """Returns the index changes that cancel a purge which has deleted no file: the table no longer holds its
        locations, and the task stays in the tombstone. `fence` is the number of the task's version with which the
        lease began."""
        holds: Edits = {location_key(location, self.entity): None for location in self.locations}
        return {**self._with(state=DROPPED, task_version=fence), **holds}

    def without_purge(self) -> Edits:
        """Returns the index changes that turn the tombstone of a purge which has deleted no file into that of a drop
        without a purge: it gives up the task, the entry of the task goes, and so do holds of a purge that has begun."""
        assert self.task is not None
        returned: Edits = self.returned(self.fence) if self.state == PURGING else {}
        purge = ("task", "purge_after", "task_version")
        plain = {name: value for name, value in {**self.json, "state": DROPPED}.items() if name not in purge}
        return {**returned, self.key: plain, task_key(self.task): None}

    def is_shared(self, index: Index) -> Steps[bool]:
        """Whether another request has named the location that the catalog generated for this table. Before the drop the
        entry shows that, and since then the claim on the location does. For a table without such a location only the
        entry counts."""
        if self.made is None or self.json.get("shared") is True:
            return self.json.get("shared") is True
        key = released_key(self.made, self.entity)
        yield Needs(keys=[key])
        claim = index.get(key)
        return claim is not None and claim.get("shared") is True

    def released(self, at_ms: int) -> Edits:
        """Returns the index changes by which a purge ends: the tombstone stays, in the state `purged`, the table gives
        up its locations, claims and loans, and the entry that leads from the task to the tombstone goes."""
        assert self.task is not None
        return {
            **self._with(state=PURGED, purged_ms=at_ms),
            **{location_key(location, self.entity): None for location in self.locations},
            **{released_key(location, self.entity): None for location in self.locations},
            **returned_loans(self.entity, self.borrowed),
            task_key(self.task): None,
        }

    def _with(self, **changes: str | int) -> dict[str, JsonObject | None]:
        """Returns the edit of the index that changes some fields of the tombstone."""
        return {self.key: {**self.json, **changes}}
