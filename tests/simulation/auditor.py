"""Watches every applied write of a run, and holds answers against what was seen (docs/design/README.md).

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
from arco_catalog.state import receipt
from arco_catalog.state.fields import integer, mapping, sequence, text, texts
from arco_catalog.state.paths import Paths, commit_key
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.segments import Segment
from tests.simulation.history import Event
from tests.simulation.world import World
from tests.support.past_heads import head_as_of

PATHS = Paths("wh")
NOBODYS = ("fence", "cancel", "add-locations", "release-locations", "lay-names", "settle-names")
"""Registry operations that are no request's own."""
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

    `names` are the tables that it names, `other_name` what one is to be called; `needs_schema` is the current schema
    that it requires of each, None for any; `undoes` marks an undrop. `units` are the attempts that took effect.
    """

    principal: str
    kind: str
    names: tuple[str, ...] = ()
    other_name: str | None = None
    needs_schema: int | None = None
    undoes: bool = False
    since: float = 0.0
    units: set[str] = field(default_factory=set)
    succeeded: bool = False
    refused: CatalogError | None = None

    @property
    def applied(self) -> int:
        """How often it was carried out."""
        return len(self.units)


class Auditor:
    """Sees everything. Raises AssertionError in the very instant in which something is wrong.

    What counts is the *effective* state of a pointer: its own, or what its intent holds once the transaction committed.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.asks: dict[str, Ask] = {}
        self.names: dict[str, Spans] = {}
        self.dropped: dict[str, Spans] = {}
        """The entities whose tombstones a name has."""
        self.schemas: dict[str, Spans] = {}
        self.locations: dict[str, Spans] = {}
        self.became_current: list[tuple[str, str, int]] = []
        self.last_commit: dict[str, float] = {}
        self.burials: dict[str, str] = {}
        self.drops_answered: dict[str, float] = {}
        self._raw: dict[str, JsonObject] = {}
        self._written_at: dict[str, float] = {}
        self._laid_on: dict[tuple[str, str], float] = {}
        self._decided: dict[str, str] = {}
        self._decided_at: dict[str, float] = {}
        self._intents: set[tuple[str, str]] = set()
        """Each transaction with each entity, or name, on which it placed an intent."""
        self._entries: dict[str, JsonObject] = {}
        self._segments: dict[str, bytes] = {}
        self._committed: set[str] = set()
        self._cancelled: set[str] = set()
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
        elif event.key.startswith(PATHS.transaction("").removesuffix(".json")):
            self._see_transaction(event, objects)
        elif "/iceberg/committed/" in event.key:
            self._see_committed_receipt(event, objects)

    def _see_committed_receipt(self, event: Event, objects: dict[str, bytes]) -> None:
        """It must be of a file that became current, and say what its pending one says: whoever wrote it."""
        said = _json(objects[event.key])
        file = (text(said, "entity"), text(said, "metadata_location"), integer(said, "metadata_ms"))
        assert file in self.became_current, f"a committed receipt of {file[1]}, which never became current"
        pending = objects[event.key.replace("/committed/", "/pending/")]
        assert objects[event.key] == receipt.encode(receipt.committed(_json(pending)))

    def _see_pointer(self, event: Event, objects: dict[str, bytes]) -> None:
        pointer = _json(objects[event.key])
        entity = text(pointer, "entity")
        stood_on = self._written_at.get(entity, 0.0)
        self._raw[entity], self._written_at[entity] = pointer, event.at
        transaction = mapping(pointer, "intent").get("transaction")
        if isinstance(transaction, str):
            self._laid_on.setdefault((entity, transaction), stood_on)
            self._intents.add((transaction, entity))
        if entity in self.locations:  # else a create's: it counts from the moment in which a name leads to it
            self._refresh(entity, event.at, stood_on, objects)

    def _see_transaction(self, event: Event, objects: dict[str, bytes]) -> None:
        decision = _json(objects[event.key])
        transaction, status = text(decision, "transaction"), text(decision, "status")
        assert self._decided.get(transaction) in (None, "pending"), f"{transaction} was decided twice"
        self._decided[transaction] = status
        if status != "pending":
            self._decided_at[transaction] = event.at
        if status != "committed":
            return
        for member in sequence(decision, "tables"):
            assert isinstance(member, dict)
            entity = text(member, "entity")
            if member["version"] is not None:
                laid = mapping(self._raw[entity], "intent").get("transaction")
                assert laid == transaction, f"{transaction} committed without its intent on {entity}: torn"
                self._refresh(entity, event.at, self._laid_on[entity, transaction], objects)
        self._see_names(event.at, objects)

    def _effective(self, entity: str) -> JsonObject:
        pointer = self._raw[entity]
        intent = mapping(pointer, "intent")
        committed = bool(intent) and self._decided.get(text(intent, "transaction")) == "committed"
        return {**pointer, **mapping(intent, "state")} if committed else pointer

    def _refresh(self, entity: str, now: float, stood_on: float, objects: dict[str, bytes]) -> None:
        """Looks whether an entity's effective state is another now, and whose work that is."""
        pointer = self._effective(entity)
        before = self.locations[entity].spans[-1][0]
        if text(pointer, "metadata_location") == before:
            return
        base = mapping(pointer, "base").get("metadata_location")
        assert base == before, f"{entity} lost the commit that made {before}"
        said = self._became_current(pointer, now, objects)
        attempt, principal = text(said, "attempt"), text(said, "principal")
        assert self._decided.get(attempt, "committed") == "committed", f"{attempt} shows, and did not commit"
        self._applied(principal, attempt)
        self._named_while_current(principal, text(said, "name"), entity, stood_on, now)

    def _became_current(self, pointer: JsonObject, now: float, objects: dict[str, bytes]) -> JsonObject:
        """A metadata file is now what readers see. Returns its pending receipt, which must be there."""
        entity, location = text(pointer, "entity"), text(pointer, "metadata_location")
        ms = integer(pointer, "metadata_ms")
        file = _json(objects[location.removeprefix(WAREHOUSE)])
        assert file["last-updated-ms"] == ms
        self.schemas.setdefault(entity, Spans()).become(file.get("current-schema-id"), now)
        self.locations.setdefault(entity, Spans()).become(location, now)
        pending = objects.get(PATHS.receipt("pending", commit_key(entity, location), ms))
        assert pending is not None, f"{location} became current without a pending receipt"
        self.became_current.append((entity, location, ms))
        self.last_commit[entity] = now
        return _json(pending)

    def _named_while_current(self, principal: str, name: str, entity: str, stood_on: float, now: float) -> None:
        """The commit must have an instant in which the name meant the entity and the base was its state
        (docs/design/commit.md#rule-4)."""
        ask = self.asks.get(principal)
        if ask is not None:
            since = max(ask.since, stood_on)
            assert self.names[name].ever(entity, since, now), f"{principal} committed to what {name} was before"

    def _see_registry(self, event: Event, objects: dict[str, bytes]) -> None:
        head = _json(objects[event.key])
        self._entries = self._index(objects)
        assert head_as_of(text(head, "id"), objects.get, PATHS) == objects[event.key], "HEAD's commit is not stored"
        for key, entry in self._entries.items():
            if key.startswith(("relation\n", "tombstone\n")):
                assert PATHS.pointer(text(entry, "entity")) in objects, f"{key!r} has no pointer"
        self._see_names(event.at, objects)
        self._see_tombstones(event.at)
        for operation in sequence(head, "operations"):
            assert isinstance(operation, dict)
            assert text(operation, "id") not in self._committed, f"{operation} is committed twice"
            self._committed.add(text(operation, "id"))
            self._cancelled.update(texts(operation, "cancels"))
            assert self._committed.isdisjoint(self._cancelled), "an attempt is committed and cancelled"
            if operation["kind"] == "drop-table":
                self.burials[text(operation, "entity")] = text(operation, "principal")
            if operation["kind"] not in NOBODYS:
                self._applied(text(operation, "principal"), text(operation, "id"))

    def _index(self, objects: dict[str, bytes]) -> dict[str, JsonObject]:
        """All that HEAD's index holds. Its segments must be there, and must never change."""

        def loaded_segment(segment: str) -> Segment:
            key = PATHS.index_segment(segment)
            assert key in objects, f"HEAD names {key}, which is not stored"
            assert self._segments.setdefault(key, objects[key]) == objects[key], f"{key} was overwritten"
            return Segment.parse(segment, objects[key], key)

        return dict(
            RegistryState.parse(objects[PATHS.manifest], None, "HEAD").with_segments(loaded_segment).index.scan("")
        )

    def _see_names(self, now: float, objects: dict[str, bytes]) -> None:
        """Which names mean something now: an intent counts once its transaction committed."""
        live: dict[str, str] = {}
        for key, entry in self._entries.items():
            if not key.startswith("relation\n"):
                continue
            transaction = entry.get("transaction")
            if isinstance(transaction, str) and self._decided.get(transaction) != "committed":
                self._intents.add((transaction, key.rpartition("\n")[2]))
                continue
            entity = live[key.rpartition("\n")[2]] = text(entry, "entity")
            if entity not in self.locations:
                said = self._became_current(self._raw[entity], now, objects)
                if isinstance(transaction, str):
                    self._applied(text(said, "principal"), transaction)
            self.drops_answered.pop(entity, None)  # undropped
        assert len(set(live.values())) == len(live), "two names for one entity"
        for name in {*self.names, *live}:
            self.names.setdefault(name, Spans([(None, 0.0, 0.0)])).become(live.get(name), now)

    def _see_tombstones(self, now: float) -> None:
        """Which names something was dropped under, that an undrop can bring back."""
        dropped: dict[str, set[str]] = {}
        for key, entry in self._entries.items():
            if key.startswith("tombstone\n"):
                dropped.setdefault(text(entry, "name"), set()).add(text(entry, "entity"))
        for name in {*self.dropped, *dropped}:
            self.dropped.setdefault(name, Spans([(frozenset(), 0.0, 0.0)])).become(
                frozenset(dropped.get(name, ())), now
            )
        live = {str(entry["entity"]) for key, entry in self._entries.items() if key.startswith("relation\n")}
        assert live.isdisjoint(set().union(*dropped.values())), "a name means a dropped table"

    def _applied(self, principal: str, unit: str) -> None:
        ask = self.asks.get(principal)
        if ask is None:
            return
        ask.units.add(unit)
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
        assert self._explained(ask, refusal), f"{ask.principal} was told what was never true: {refusal!r}"

    def undone(self, ask: Ask, unavailable: CatalogError) -> None:
        """A request without a key was answered that nothing was done."""
        ask.refused = unavailable
        assert ask.applied == 0, f"{ask.principal} is applied in spite of {unavailable!r}"

    def _explained(self, ask: Ask, refusal: CatalogError) -> bool:
        """Whether a definite no was true at some instant since the request was sent."""
        now = self.world.loop.time()
        match refusal:
            case NoSuchTable() if ask.undoes:  # nothing was dropped yet, or its tombstone had been collected
                return any(
                    name not in self.dropped or self.dropped[name].ever(frozenset(), ask.since, now)
                    for name in ask.names
                )
            case NoSuchTable():
                return any(name not in self.names or self.names[name].ever(None, ask.since, now) for name in ask.names)
            case AlreadyExists():
                wanted = ask.names if ask.other_name is None else (ask.other_name,)
                return any(self.names[name].values(ask.since, now) != {None} for name in wanted)
            case CommitFailed() if "table already exists" in refusal.message:
                return any(self.names[name].values(ask.since, now) != {None} for name in ask.names)
            case CommitFailed() if "under way" in refusal.message:
                return self._undecided_meanwhile(ask)
            case CommitFailed() if ask.needs_schema is not None:
                return any(self._schemas_of(name, ask.since, now) != {ask.needs_schema} for name in ask.names)
            case _:
                return False

    def _undecided_meanwhile(self, ask: Ask) -> bool:
        """Whether an intent on a name of the request, or on the table that it meant, was undecided since."""
        now = self.world.loop.time()
        concerned: set[object] = {*ask.names}
        for name in ask.names:
            concerned |= self.names[name].values(ask.since, now) if name in self.names else set()
        return any(
            placed in concerned and self._decided_at.get(transaction, math.inf) >= ask.since
            for transaction, placed in self._intents
        )

    def _schemas_of(self, name: str, since: float, until: float) -> set[object]:
        entities = self.names[name].values(since, until) if name in self.names else set()
        return {
            schema
            for entity in entities
            if isinstance(entity, str)
            for schema in self.schemas[entity].values(since, until)
        }

    def read(self, entity: str, location: str, since: float) -> None:
        """A reader was told that this was a table's state: it must have been, at some instant since it asked."""
        now = self.world.loop.time()
        assert self.locations[entity].ever(location, since, now), f"{location} was never current while it was read"

    def drop_was_answered(self, ask: Ask) -> None:
        """From now on the state of what was dropped stays as it is."""
        for entity, operation in self.burials.items():
            if operation == ask.principal:
                self.drops_answered.setdefault(entity, self.world.loop.time())

    # What must be true in the end.

    def close(self, *, reconciled: bool) -> None:
        """Nothing is under way any more: answers and state agree, and every commit has exactly one receipt path; after
        a last walk receipts, commits and files that became current are one number."""
        objects = self.world.snapshot()
        for ask in self.asks.values():
            assert ask.applied == 1 if ask.succeeded else ask.refused is not None, f"{ask.principal} was never answered"
            assert ask.applied == 0 or ask.refused is None
        keys = [commit_key(entity, location) for entity, location, _ in self.became_current]
        assert len(set(keys)) == len(keys), "a file became current twice"
        committed = {key.rpartition("/")[2] for key in objects if "/iceberg/committed/" in key}
        live = {f"{key}.json" for key in keys}
        assert committed == live if reconciled else committed <= live
        for entity, location, ms in self.became_current:
            assert PATHS.receipt("pending", commit_key(entity, location), ms) in objects
        for entity, when in self.drops_answered.items():
            if not any(entity == spans.spans[-1][0] for spans in self.names.values()):
                assert self.last_commit.get(entity, 0.0) <= when, f"{entity} moved after its drop was answered"


def _json(body: bytes) -> JsonObject:
    document = loads(body)
    assert isinstance(document, dict)
    return document
