"""What the reconciler has walked: for each entity the pointer version of its last complete walk, and the file that it
began at. A version never comes back, so an entry is true for ever; a lost one costs a walk (design.md 6.8)."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.access import State
from arco_catalog.state.fields import mapping, optional_text, parse_record, text
from storage_backends import ANY, Found

SHARDS = 16
"""Objects over which the log is spread: each run reads them all, and writes those in which something changed."""


@dataclass(frozen=True, slots=True)
class Walked:
    """A complete walk of an entity: of which pointer version, and from which metadata file back."""

    version: str
    file: str


@dataclass
class WalkLog:
    """The log as one run knows it."""

    walked: dict[str, Walked] = field(default_factory=dict)
    unwritten: int = 0
    _changed: set[int] = field(default_factory=set)

    @classmethod
    async def read(cls, state: State, shards: Iterable[int] = range(SHARDS)) -> "WalkLog":
        """Reads the log, or some of its shards."""
        log = cls()
        for shard in shards:
            key = state.paths.walk_log(shard)
            found = await state.store.get(key)
            if isinstance(found, Found):
                log.walked.update(_parsed(mapping(parse_record(found.body, key), "walked")))
        return log

    def note(self, entity: str, walked: Walked) -> None:
        """Remembers a complete walk."""
        self.walked[entity] = walked
        self.unwritten += 1
        self._changed.add(shard_of(entity))

    async def write(self, state: State) -> None:
        """Stores what changed. Two runs at once may overwrite each other's entries: each is true, and a lost one is
        walked again."""
        shards: dict[int, JsonObject] = {shard: {} for shard in sorted(self._changed)}
        for entity, walked in self.walked.items():
            if (shard := shard_of(entity)) in shards:
                shards[shard][entity] = {"version": walked.version, "file": walked.file}
        for shard, entries in shards.items():
            body = dumps({"version": 1, "walked": entries}, sort_keys=True)
            await state.store.put(state.paths.walk_log(shard), body, ANY)
        self._changed.clear()
        self.unwritten = 0


def shard_of(entity: str) -> int:
    """Where an entity's entry is."""
    return hashlib.sha256(entity.encode()).digest()[0] % SHARDS


def _parsed(entries: Mapping[str, object]) -> dict[str, Walked]:
    return {
        entity: Walked(text(entry, "version"), optional_text(entry, "file") or "")
        for entity, entry in entries.items()
        if isinstance(entry, dict)
    }
