"""Watches every applied write of a run, and holds answers against what was seen (design.md, section 6).

Each request of a scenario has a principal of its own, which receipts and registry operations repeat: so the auditor
knows of every move whose it is. It keeps what it needs to judge a claim about the past: which entity a name meant, and
in which state a table was, from when to when.
"""

import math
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import (
    AlreadyExists,
    CatalogError,
    CommitFailed,
    NoSuchTable,
)
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.state.fields import integer, mapping, sequence, text
from arco_catalog.state.paths import Paths, commit_key
from tests.simulation.history import Event
from tests.simulation.world import World

PATHS = Paths("wh")
WAREHOUSE = "memory:///"


@dataclass
class Spans:
    """A value over time: (value, from, until), the last one open."""

    spans: list[tuple[object, float, float]] = field(default_factory=list)

    def become(self, value: object, now: float) -> None:
        """From now on it is this."""
        if self.spans:
            before, since, _ = self.spans[-1]
            if before == value:
                return
            self.spans[-1] = (before, since, now)
        self.spans.append((value, now, math.inf))

    def ever(self, value: object, since: float, until: float) -> bool:
        """Whether it was this at some instant from `since` to `until`."""
        return any(was == value and start <= until and end >= since for was, start, end in self.spans)

    def values(self, since: float, until: float) -> set[object]:
        """All it was from `since` to `until`."""
        return {was for was, start, end in self.spans if start <= until and end >= since}


@dataclass
class Ask:
    """One request, however often it is sent: what it asks for, since when, and how often it was carried out.

    `name` is the table that it names, `other_name` what it is to be called; `needs_schema` is the current schema that
    it requires, None for any.
    """

    principal: str
    kind: str
    name: str | None = None
    other_name: str | None = None
    needs_schema: int | None = None
    since: float = 0.0
    applied: int = 0
    succeeded: bool = False
    refused: CatalogError | None = None


class Auditor:
    """Sees everything. Raises AssertionError in the very instant in which something is wrong."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asks: dict[str, Ask] = {}
        self.names: dict[str, Spans] = {}
        self.schemas: dict[str, Spans] = {}
        self.current: dict[str, JsonObject] = {}
        self.written_at: dict[str, float] = {}
        self.became_current: list[tuple[str, str, int]] = []
        self.last_commit: dict[str, float] = {}
        self.burials: dict[str, str] = {}
        self.drops_answered: dict[str, float] = {}
        world.observe(self.see)

    def ask(self, ask: Ask) -> Ask:
        """A request is sent for the first time."""
        ask.since = self.world.loop.time()
        self.asks[ask.principal] = ask
        return ask

    # What is seen.

    def see(self, event: Event) -> None:
        """One applied write."""
        if event.kind != "put":
            return
        objects = self.world.snapshot()
        if event.key.startswith(PATHS.pointers):
            self._see_pointer(event, objects)
        elif event.key == PATHS.manifest:
            self._see_registry(event, objects)

    def _see_pointer(self, event: Event, objects: dict[str, bytes]) -> None:
        pointer = _json(objects[event.key])
        entity = text(pointer, "entity")
        before = self.current.get(entity)
        base_written = self.written_at.get(entity, 0.0)
        self.current[entity], self.written_at[entity] = pointer, event.at
        if before is None:
            return  # a create's: it counts from the moment in which a name leads to it
        if text(before, "metadata_location") != text(pointer, "metadata_location"):
            principal = text(self._became_current(pointer, event.at, objects), "principal")
            self._applied(principal)
            self._named_while_current(self.asks.get(principal), entity, base_written, event.at)

    def _became_current(self, pointer: JsonObject, now: float, objects: dict[str, bytes]) -> JsonObject:
        """A metadata file is now what readers see. Returns its pending receipt, which must be there."""
        entity, location, ms = (
            text(pointer, "entity"),
            text(pointer, "metadata_location"),
            integer(pointer, "metadata_ms"),
        )
        file = _json(objects[location.removeprefix(WAREHOUSE)])
        assert file["last-updated-ms"] == ms
        self.schemas.setdefault(entity, Spans()).become(file.get("current-schema-id"), now)
        receipt = objects.get(PATHS.receipt("pending", commit_key(entity, location), ms))
        assert receipt is not None, f"{location} became current without a pending receipt"
        self.became_current.append((entity, location, ms))
        self.last_commit[entity] = now
        return _json(receipt)

    def _named_while_current(self, ask: Ask | None, entity: str, base_written: float, now: float) -> None:
        """The commit must have an instant in which the name meant the entity and the base was its state (rule 4)."""
        if ask is None or ask.name is None:
            return
        since = max(ask.since, base_written)
        assert self.names[ask.name].ever(entity, since, now), f"{ask.principal} committed to what {ask.name} was before"

    def _see_registry(self, event: Event, objects: dict[str, bytes]) -> None:
        head = _json(objects[event.key])
        entries = mapping(mapping(head, "index"), "embedded")
        commit = objects.get(PATHS.registry_commit(text(head, "id")))
        assert commit == objects[event.key], "HEAD moved to a commit that is not stored"
        live: dict[str, str] = {}
        for key, entry in entries.items():
            assert isinstance(entry, dict)
            if key.startswith(("relation\n", "tombstone\n")):
                entity = text(entry, "entity")
                assert PATHS.pointer(entity) in objects, f"{key!r} has no pointer"
                if key.startswith("relation\n"):
                    live[key.rpartition("\n")[2]] = entity
                    if entity not in self.schemas:
                        self._became_current(self.current[entity], event.at, objects)
        assert len(set(live.values())) == len(live), "two names for one entity"
        for name in {*self.names, *live}:
            self.names.setdefault(name, Spans([(None, 0.0, 0.0)])).become(live.get(name), event.at)
        for operation in sequence(head, "operations"):
            assert isinstance(operation, dict)
            if operation["kind"] == "drop-table":
                self.burials[text(operation, "entity")] = text(operation, "principal")
            if operation["kind"] not in ("fence", "add-locations"):
                self._applied(text(operation, "principal"))

    def _applied(self, principal: str) -> None:
        ask = self.asks.get(principal)
        if ask is None:
            return
        ask.applied += 1
        assert ask.applied == 1, f"{principal} was applied twice"
        assert ask.refused is None, f"{principal} was told {ask.refused!r} and is applied all the same"

    # What is said.

    def answered(self, ask: Ask) -> None:
        """A request was answered with success."""
        ask.succeeded = True
        assert ask.applied == 1, f"{ask.principal} was told yes, and is applied {ask.applied} times"
        assert ask.refused is None, f"{ask.principal} was told yes, and no: {ask.refused!r}"

    def refused(self, ask: Ask, refusal: CatalogError) -> None:
        """A request was answered with a definite no, which must have been true at some instant since it was sent."""
        ask.refused = refusal
        assert ask.applied == 0, f"{ask.principal} is applied, and was told {refusal!r}"
        assert not ask.succeeded, f"{ask.principal} was told yes, and no: {refusal!r}"
        now, name = self.world.loop.time(), ask.name
        match refusal:
            case NoSuchTable() if name is not None:
                assert name not in self.names or self.names[name].ever(None, ask.since, now), f"{name} was there"
            case AlreadyExists() if (wanted := ask.other_name or name) is not None:
                assert self.names[wanted].values(ask.since, now) != {None}, f"{wanted} was free"
            case CommitFailed() if name is not None and ask.needs_schema is not None:
                seen: set[object] = set()
                for entity in self.names[name].values(ask.since, now):
                    if isinstance(entity, str):
                        seen |= self.schemas[entity].values(ask.since, now)
                assert seen != {ask.needs_schema}, f"{ask.principal}'s requirement held all the time"
            case _:
                raise AssertionError(f"{ask.principal} got an answer that nothing explains: {refusal!r}")

    def drop_was_answered(self, ask: Ask) -> None:
        """From now on the state of what was dropped stays as it is."""
        for entity, operation in self.burials.items():
            if operation == ask.principal:
                self.drops_answered.setdefault(entity, self.world.loop.time())

    # What must be true in the end.

    def close(self) -> None:
        """Nothing is under way any more: answers and state agree, and every commit has exactly one receipt path."""
        objects = self.world.snapshot()
        for ask in self.asks.values():
            assert ask.applied == 1 if ask.succeeded else ask.refused is not None, f"{ask.principal} was never answered"
            assert ask.applied == 0 or ask.refused is None
        keys = [commit_key(entity, location) for entity, location, _ in self.became_current]
        assert len(set(keys)) == len(keys), "a file became current twice"
        committed = {key.rpartition("/")[2] for key in objects if "/iceberg/committed/" in key}
        live = {f"{key}.json" for key in keys}
        assert committed <= live, "a committed receipt of what never became current"
        for entity, location, ms in self.became_current:
            assert PATHS.receipt("pending", commit_key(entity, location), ms) in objects
        for entity, when in self.drops_answered.items():
            if not any(entity == spans.spans[-1][0] for spans in self.names.values()):
                assert self.last_commit.get(entity, 0.0) <= when, f"{entity} moved after its drop was answered"


def _json(body: bytes) -> JsonObject:
    document = loads(body)
    assert isinstance(document, dict)
    return document
