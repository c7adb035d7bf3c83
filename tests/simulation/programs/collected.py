"""Which deletions of a collection are lawful (docs/design/collection.md), by the state in the instant of each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import mapping, text
from arco_catalog.state.paths import Paths, commit_key
from tests.simulation.programs.history import History


@dataclass
class Deletions:
    """Judges each deletion of a record of the catalog. `attempts` are those that each marker names, by its folder;
    `expired` those without a marker since it was deleted: none of them may commit any more."""

    paths: Paths
    history: History
    attempts: dict[str, set[str]] = field(default_factory=dict)
    expired: set[str] = field(default_factory=set)

    def add_slot(self, key: str, slot: JsonObject) -> None:
        """Notes the attempt of a slot that was put."""
        names = {text(slot, "attempt")}
        transaction = mapping(slot, "write_set").get("transaction") or slot.get("transaction")
        names |= {transaction} if isinstance(transaction, str) else set()
        self.attempts.setdefault(key.rpartition("/")[0], set()).update(names)

    def has_marker(self, key: str, left: frozenset[str]) -> bool:
        """Whether a marker with its slot 0 names the transaction of this decision."""
        name = key.removeprefix(self.paths.transactions).removesuffix(".json")
        return any(name in names and f"{marker}/0.json" in left for marker, names in self.attempts.items())

    def problems(
        self, key: str, entries: Mapping[str, JsonObject], pointers: Mapping[str, JsonObject], left: frozenset[str]
    ) -> Iterator[str]:
        """Problems with the deletion of one object. `entries` are those of HEAD, `left` the other keys."""
        name = key.rpartition("/")[2].removesuffix(".json")
        named = {each for entry in entries.values() if isinstance(each := entry.get("entity"), str)}
        if key.startswith(self.paths.markers):
            self.expired |= self.attempts.get(key.rpartition("/")[0], set())
        elif key.startswith(self.paths.pointers):
            if name in named:
                yield f"the pointer of {name} was deleted, and a name leads to it"
        elif key.startswith(self.paths.transactions):
            yield from self._decision(name, entries, pointers)
        elif key.startswith(self.paths.events) and "/iceberg/pending/" in key:
            current = any(commit_key(entity, file) == name for entity, file, _ in self.history.current)
            if current and key.replace("/pending/", "/committed/") not in left:
                yield f"{key} was deleted, and its commit has no receipt"
        elif key.startswith(self.paths.events) and "/iceberg/committed/" in key:
            for entity, file in self.history.state.files.items():
                if entity in named and commit_key(entity, file) == name:
                    yield f"the receipt of the current file of {entity} was deleted"

    def _decision(
        self, transaction: str, entries: Mapping[str, JsonObject], pointers: Mapping[str, JsonObject]
    ) -> Iterator[str]:
        known = self.history.transactions.get(transaction)
        if known is not None and not known.committed:
            return
        waits = [
            entity for entity, each in pointers.items() if mapping(each, "intent").get("transaction") == transaction
        ]
        waits += [key for key, entry in entries.items() if entry.get("transaction") == transaction]
        if waits:
            yield f"the decision of {transaction} was deleted, and {waits} wait for it"
