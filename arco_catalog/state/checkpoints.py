"""The reconciler's checkpoints: for each entity the pointer version of its last complete walk and the file at which the
walk began; for an entity that was not walked to the end, the files that are left. A version never comes back, so a
checkpoint stays true; a lost one costs a walk (docs/design/reconciliation.md#reconciler).

An entity whose walk is not complete is saved apart, under `begun`. Earlier versions don't read that field and walk
such an entity from the start. Nor do they read `after`, the entity that was walked last.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import partial

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.access import State
from arco_catalog.state.compare_and_swap import StoredValue, UpdateContention, update_until_applied
from arco_catalog.state.fields import integer, mapping, optional_text, parse_record, sequence, text
from arco_catalog.state.pointer import MetadataFile
from storage_backends import Found, Version
from storage_backends.lazy_dataclass import dataclass

SHARDS = 16
"""The number of objects with checkpoints. Each run reads all of them, and writes those in which an entry changed."""
TRIES = 5
"""After so many writes of a shard that failed because other runs did, its changes are dropped."""


@dataclass(frozen=True, slots=True)
class Span:
    """Metadata files of an entity that the reconciler has yet to walk: from `newest` back to `until`, which is not one
    of them, or to the entity's first file if that is None."""

    newest: MetadataFile
    until: str | None
    failed: bool = False
    """Whether a walk stopped here because a file or receipt could not be read."""


@dataclass(frozen=True, slots=True)
class WalkCheckpoint:
    """How far the reconciler has walked an entity: from `file` back to the first file, except for the spans in `left`.
    `version` is that of the pointer if the walk was complete, and empty otherwise, which matches no pointer."""

    version: str
    file: str
    left: tuple[Span, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the walk over an entity's metadata files was complete, so that no work is left until the pointer
        moves."""
        return self.version != ""


@dataclass
class Checkpoints:
    """The reconciler's checkpoints of entities, as one run has read or set them. `after` is the entity that was walked
    last. `unwritten` counts the entities and files that were walked since the last write. `damaged` has a message for
    each object that could not be read, and whose checkpoints count as missing."""

    by_entity: dict[str, WalkCheckpoint] = field(default_factory=dict)
    after: str | None = None
    unwritten: int = 0
    damaged: list[str] = field(default_factory=list)
    _changed: dict[int, set[str]] = field(default_factory=dict)
    _versions: dict[int, Version | None] = field(default_factory=dict)
    """Of each shard as it was read or written last, which `by_entity` has whole; None for one that is not there."""

    @classmethod
    async def read(cls, state: State, shards: Iterable[int] = range(SHARDS)) -> "Checkpoints":
        """Reads the reconciler's checkpoints from the objects with these numbers, by default from all. An object that
        is corrupt counts as empty, with a message in `damaged`. Raises `StoreError`."""
        log = cls()
        for number in shards:
            log.by_entity.update(await log._read(state, number))
        return log

    def record(self, entity: str, walked: WalkCheckpoint, files: int = 0) -> None:
        """Notes in memory up to which metadata file an entity was `walked`, and counts the entity and the `files` files
        of the walk in `unwritten`. `write` stores it."""
        self.by_entity[entity] = walked
        self.unwritten += 1 + files
        self._changed.setdefault(shard_of(entity), set()).add(entity)

    def forget(self, entities: Iterable[str]) -> None:
        """Removes the reconciler's checkpoints of entities that no longer exist from memory; `write` stores the
        removal."""
        for entity in entities:
            self.by_entity.pop(entity, None)
            self._changed.setdefault(shard_of(entity), set()).add(entity)

    def pass_turn(self, entity: str) -> None:
        """Notes that the reconciler walked `entity` last; `write` stores it."""
        self.after = entity
        self._changed.setdefault(0, set())

    async def write(self, state: State) -> None:
        """Stores the changed checkpoints, merged with those that other runs of the reconciler stored meanwhile, and
        sets `unwritten` to 0. If each of `TRIES` tries fails, since other runs write the same object or the outcome is
        unknown, the changes in that object are dropped without an error, and a later run walks these entities anew.
        Raises `StoreError`."""
        shards: dict[int, dict[str, WalkCheckpoint]] = {number: {} for number in self._changed}
        for entity, walked in self.by_entity.items():
            if (number := shard_of(entity)) in shards:
                shards[number][entity] = walked
        for number, entries in shards.items():
            await self._write(state, number, entries)
            del self._changed[number]
        self.unwritten = 0

    async def _write(self, state: State, number: int, entries: dict[str, WalkCheckpoint]) -> None:
        """Stores the changed checkpoints of the object `number` of the reconciler, in which `entries` are all known
        ones, changed or not; in the object 0 also the entity that was walked last. After `TRIES` lost tries the changes
        are dropped, without an error. Raises `StoreError`."""
        ours = {entity: entries[entity] for entity in self._changed[number] if entity in entries}
        gone = self._changed[number] - ours.keys()
        try:
            written = await update_until_applied(
                state,
                state.paths.checkpoints(number),
                partial(self._parsed, state.paths.checkpoints(number)),
                lambda stored: {entity: walked for entity, walked in {**stored, **ours}.items() if entity not in gone},
                lambda merged: dumps(_to_json(merged, self.after if number == 0 else None), sort_keys=True),
                known=StoredValue(entries, self._versions[number]) if number in self._versions else None,
                tries=TRIES,
            )
        except UpdateContention:
            self._versions.pop(number, None)
        else:
            self._versions[number] = written.version

    async def _read(self, state: State, number: int) -> dict[str, WalkCheckpoint]:
        """Reads the checkpoints of a shard, and notes the version for `write`; empty if it does not exist or is
        corrupt. Raises `StoreError`."""
        key = state.paths.checkpoints(number)
        found = await state.read(key)
        self._versions[number] = None if found is None else found.version
        return self._parsed(key, found)

    def _parsed(self, key: str, found: Found | None) -> dict[str, WalkCheckpoint]:
        """Returns the checkpoints in one object. A missing or corrupt one counts as empty, and a corrupt one is listed
        in `damaged`. Also sets `after` from it if that is None."""
        if found is None:
            return {}
        try:
            document = parse_record(found.body, key)
            entries = {**mapping(document, "walked"), **mapping(document, "begun")}
            checkpoints = {entity: _parsed(entry) for entity, entry in entries.items() if isinstance(entry, dict)}
        except InternalError as error:
            self.damaged.append(
                f"The reconciler's checkpoints in {key} can't be read ({error.message}): the tables and views in "
                "it are walked from the start"
            )
            return {}
        self.after = self.after or optional_text(document, "after")
        return checkpoints


def shard_of(entity: str) -> int:
    """Returns the number, below `SHARDS`, of the object that has the reconciler's checkpoint of an entity."""
    return hashlib.sha256(entity.encode()).digest()[0] % SHARDS


def _to_json(entries: Mapping[str, WalkCheckpoint], after: str | None) -> JsonObject:
    """Returns the reconciler's checkpoints of one object as it stores them: those of complete walks under `walked`,
    those with files left under `begun`. Adds `after`, the entity that was walked last, if it is not None."""
    walked: JsonObject = {}
    begun: JsonObject = {}
    for entity, each in entries.items():
        entry: JsonObject = {"version": each.version, "file": each.file}
        if each.left:
            entry["left"] = [_span(span) for span in each.left]
        (begun if each.left else walked)[entity] = entry
    document: JsonObject = {"version": 1, "walked": walked, "begun": begun}
    if after is not None:
        document["after"] = after
    return document


def _span(span: Span) -> JsonObject:
    """Returns the JSON of a span of metadata files that the reconciler has yet to walk."""
    newest = span.newest
    return {
        "metadata_location": newest.location,
        "metadata_ms": newest.ms,
        "until": span.until,
        "failed": span.failed,
    }


def _parsed(entry: JsonObject) -> WalkCheckpoint:
    """Reads the reconciler's checkpoint of an entity from JSON. Raises `InternalError` if `version`, or the file or the
    time of a span, is missing or has a wrong type. Other fields may be missing; spans that are no objects are left
    out."""
    left = tuple(
        Span(
            MetadataFile(text(span, "metadata_location"), integer(span, "metadata_ms")),
            optional_text(span, "until"),
            span.get("failed") is True,
        )
        for span in sequence(entry, "left")
        if isinstance(span, dict)
    )
    return WalkCheckpoint(text(entry, "version"), optional_text(entry, "file") or "", left)
