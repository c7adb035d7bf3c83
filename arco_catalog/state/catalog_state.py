"""The record in a catalog's own registry that a drop has closed the catalog, or that an undrop has opened it. It is
there because no commit can change both this registry and the realm's, which has the catalog's name."""

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.fields import mapping, optional_text, texts
from arco_catalog.state.index import Index, level
from storage_backends.lazy_dataclass import dataclass

CATALOG_STATE = level("catalog", ()) + "state"
"""Key of the entry."""
DROPPING = "dropping"
"""The state of a catalog that is empty and stays so: its name is about to be taken away."""
OPEN = "open"
"""The state of a catalog after an undrop. One that was never dropped has no entry."""


@dataclass(frozen=True, slots=True)
class CatalogState:
    """The index entry that records whether a drop has closed the catalog or an undrop has opened it; empty for a
    catalog that was never dropped."""

    json: JsonObject

    @classmethod
    def of(cls, index: Index) -> "CatalogState":
        """Returns the state of the catalog that has this index. The entry of `CATALOG_STATE` must be loaded."""
        return cls(index.get(CATALOG_STATE) or {})

    @property
    def is_closed(self) -> bool:
        """Whether a drop has closed the catalog, so that nothing may be made in it any more."""
        return self.json.get("state") == DROPPING

    @property
    def catalog(self) -> JsonObject | None:
        """The catalog's entry in the realm when it was closed. None for one that an earlier version closed, for one
        that was never closed, and after an undrop."""
        return mapping(self.json, "catalog") or None

    @property
    def closed_by(self) -> str | None:
        """The entity id that the catalog had in its realm when a drop closed it; None if that is not recorded, and
        after an undrop."""
        entry = self.catalog
        return None if entry is None else optional_text(entry, "entity")

    @property
    def cancelled(self) -> tuple[str, ...]:
        """The names of the dropped tables whose purges were cancelled when the catalog was closed; empty after an
        undrop."""
        return texts(self.json, "cancelled_purges")

    @property
    def former(self) -> tuple[str, ...]:
        """The ids that the catalog had in its realm before each undrop, and those under which it was closed when a
        further drop closed it. A drop that was begun under one of them must not close the catalog."""
        return texts(self.json, "former")

    def closed(self, entry: JsonObject, cancelled: list[JsonValue]) -> JsonObject:
        """Returns the entry that closes the catalog. `entry` is that of the catalog in the realm, and `cancelled` are
        the names of the tables whose purges were cancelled. If the catalog is closed already, the id under which it was
        closed becomes a former one."""
        changed: JsonObject = {**self.json, "catalog": entry, "state": DROPPING, "cancelled_purges": cancelled}
        return {**changed, "former": self._former(None)} if self.is_closed else changed

    def reopened(self, retired: str | None) -> JsonObject:
        """Returns the entry after an undrop. The id under which the catalog was closed becomes a former one, and so
        does `retired`, the id by which the realm knew the catalog until now, None if there was none."""
        reopened: JsonObject = {"state": OPEN, "catalog": {}, "cancelled_purges": [], "former": self._former(retired)}
        return {**self.json, **reopened}

    def _former(self, retired: str | None) -> list[JsonValue]:
        """Returns the former ids of the catalog in its realm, with the one under which it was closed and `retired`
        added, without repetitions."""
        ids = (*self.former, *(each for each in (self.closed_by, retired) if each is not None))
        return [*dict.fromkeys(ids)]


def is_dropping(index: Index) -> bool:
    """Whether the catalog is closed by a drop, so that nothing may be made in it any more. The entry of `CATALOG_STATE`
    must be loaded."""
    return CatalogState.of(index).is_closed
