"""The branches and tags of a table while a commit changes them."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import cast

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.snapshots import REF_FIELDS, SnapshotRef


class Refs:
    """The branches and tags of a table by name, while a commit changes them. The cost of a change depends on its own
    size, not on how many refs there are: fields that this catalog does not know are kept apart and added again once,
    and an index has the refs to each snapshot."""

    def __init__(self, refs: Mapping[str, SnapshotRef]) -> None:
        self._by_name = dict(refs)
        self._unknown: dict[str, JsonObject] = {}
        """The unknown fields of each ref that was changed. `_by_name` has that ref without them."""

    def set(self, name: str, ref: SnapshotRef) -> bool:
        """Adds a branch or tag, or replaces the one of this name. Returns whether that changes anything.

        If the name has a ref, its known fields that `ref` lacks (retention) are removed, and its unknown fields stay.
        """
        known, unknown = _split(ref)
        old = self._by_name.get(name)
        if old is None:
            self._unknown[name] = unknown
        else:
            if name not in self._unknown:
                old, self._unknown[name] = _split(old)
                self._by_name[name] = old
            kept = self._unknown[name]
            if known == old and all(field in kept and kept[field] == value for field, value in unknown.items()):
                return False
            kept.update(unknown)
            self._forget_snapshot_of(name)
        self._by_name[name] = known
        if "_names" in vars(self):  # built already; otherwise its first use builds it from `_by_name`
            self._names.setdefault(known["snapshot-id"], {})[name] = None
        return True

    def remove(self, name: str) -> bool:
        """Removes a branch or tag with all fields. Returns whether it existed."""
        if name not in self._by_name:
            return False
        self._forget_snapshot_of(name)
        del self._by_name[name]
        self._unknown.pop(name, None)
        return True

    def of_snapshots(self, snapshot_ids: Iterable[int]) -> list[str]:
        """Returns the names of all refs to these snapshots, in the order of `snapshot_ids`."""
        return [name for snapshot_id in snapshot_ids for name in self._names.get(snapshot_id, ())]

    def stored(self) -> dict[str, SnapshotRef]:
        """Returns all refs by name, as table metadata stores them: with the fields that this catalog does not know."""
        return {
            name: cast(SnapshotRef, {**unknown, **ref}) if (unknown := self._unknown.get(name)) else ref
            for name, ref in self._by_name.items()
        }

    @cached_property
    def _names(self) -> dict[int, dict[str, None]]:
        """The names of the refs to each snapshot, built at the first use and updated from then on."""
        names: dict[int, dict[str, None]] = {}
        for name, ref in self._by_name.items():
            names.setdefault(ref["snapshot-id"], {})[name] = None
        return names

    def _forget_snapshot_of(self, name: str) -> None:
        """Removes a ref from the lookup of refs by snapshot, if that is built."""
        if "_names" in vars(self):
            del self._names[self._by_name[name]["snapshot-id"]][name]


def _split(ref: SnapshotRef) -> tuple[SnapshotRef, JsonObject]:
    """Returns the fields of a branch or tag that this catalog knows, and the unknown ones."""
    fields = cast(JsonObject, ref)
    known = {name: value for name, value in fields.items() if name in REF_FIELDS}
    unknown = {name: value for name, value in fields.items() if name not in REF_FIELDS}
    return cast(SnapshotRef, known), unknown
