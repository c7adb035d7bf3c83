"""Watches every applied write of a run and keeps what judges need: the state of the catalog from instant to instant.

What counts is the *effective* state: a pointer's own, or what its intent holds once the transaction committed; a name's
entry unless its transaction did not.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.history import OWN
from arco_catalog.planning.governance import governance_of, is_protected
from arco_catalog.state.entries import NamespaceEntry, RelationEntry
from arco_catalog.state.fields import integer, mapping, optional_text, sequence, text, texts
from arco_catalog.state.followed import FollowedTable
from arco_catalog.state.index import Namespace
from arco_catalog.state.key_settings import KeyPolicy
from arco_catalog.state.marker import CLOSED, KEYLESS
from arco_catalog.state.paths import Paths, commit_key
from arco_catalog.state.policies import PolicyEntry
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.segments import Segment
from arco_catalog.state.tombstone import DROPPED, PURGED, PURGING, Tombstone
from arco_catalog.tasks.execution import PRINCIPAL as WORKER
from arco_catalog.upkeep.expiry.executor import FILES_AGE_MS
from storage_backends import Applied
from tests.simulation.history import Event
from tests.simulation.programs.collected import Deletions
from tests.simulation.programs.history import Deletion, Effect, History, Moment, Transaction
from tests.simulation.programs.requests import Name
from tests.simulation.programs.states import CatalogState, Lie, Policy, Relation, Stone, differences, done, in_order
from tests.simulation.world import World
from tests.support.past_heads import head_as_of

PATHS = Paths("wh")
STORE = "memory:///"
WHOLE_SECONDS = 5
"""By how much the store's clock, which has whole seconds, may be ahead."""
WITHOUT_POINTER = ("create-namespace", "create-generic-table", "create-semantic-model", "create-policy")
"""Creates whose effect is in the registry alone."""


class Recorder:
    """Writes the history of one catalog in a run, until it is `closed`."""

    def __init__(self, world: World, paths: Paths = PATHS) -> None:
        self.world = world
        self.paths = paths
        self.history = History()
        self.closed = False
        self._pointers: dict[str, JsonObject] = {}
        self._written_at: dict[str, float] = {}
        self._laid_on: dict[tuple[str, str], float] = {}
        self._entries: dict[str, JsonObject] = {}
        self._outlived: set[str] = set()
        """Decisions that were deleted when no marker needed them any more."""
        self._segments: dict[str, Segment] = {}
        self._expired: dict[str, tuple[str, float]] = {}
        """Files that an expiry by a worker has left to no snapshot of a table: the table, and when that was."""
        self.deletions = Deletions(paths, self.history)
        self._event = Event(0.0, "")
        world.observe(self.see)

    def resume(self, before: "Recorder") -> None:
        """Goes on from what another recorder saw, as if that had been long ago."""
        history = before.history
        self.history.moments = [Moment(-1.0, history.state)]
        self.history.documents.update(history.documents)
        self.history.manifests = deepcopy(history.manifests)
        self.history.properties.update(history.properties)
        self.history.current.extend(history.current)
        self._pointers.update(before._pointers)
        self._entries.update(before._entries)
        self._segments.update(before._segments)

    def resume_restored(self, archived: History) -> None:
        """Goes on from the catalog that a restore has made of one whose history is `archived`, as if it had been so for
        long."""
        history = self.history
        history.documents.update(archived.documents)
        history.manifests = deepcopy(archived.manifests)
        history.properties.update(archived.properties)
        for key in self.world.keys(self.paths.transactions):
            decision = self._read(key)
            committed = decision["status"] == "committed"
            history.transactions[text(decision, "transaction")] = Transaction(-1.0, -1.0, committed)
        for key in self.world.keys(self.paths.markers):
            self.deletions.add_slot(key, self._read(key))
        for key in self.world.keys(self.paths.pointers):
            pointer = self._read(key)
            self._pointers[text(pointer, "entity")] = pointer
        head = RegistryState.parse(self._body(self.paths.manifest), None, "HEAD")
        self._entries = dict(head.with_segments(self._segment).index.scan(""))
        known = {
            entry["entity"]
            for key, entry in self._entries.items()
            if key.startswith(("relation\n", "tombstone\n"))
            and ("transaction" not in entry or self._committed(entry["transaction"]))
        }
        live = {entity: self.effective(entity) for entity in self._pointers if entity in known}
        files = {entity: text(pointer, "metadata_location") for entity, pointer in live.items()}
        marks = {entity: optional_text(mapping(each, "dropped"), "operation") for entity, each in live.items()}
        history.moments = [Moment(-1.0, self._shown(CatalogState(files=files, marks=marks)))]
        history.current += archived.chain_of(files)
        history.deletions += archived.deletions
        history.collected_before += [each for each in archived.current if each[0] not in known]

    @property
    def pointers(self) -> Mapping[str, JsonObject]:
        """All pointers, those to which no name leads included."""
        return self._pointers

    @property
    def entries(self) -> Mapping[str, JsonObject]:
        """HEAD's index."""
        return self._entries

    def see(self, event: Event) -> None:
        """One applied write."""
        if self.closed:
            return
        self._event = event
        try:
            if event.kind == "delete" and _deleted_nothing(event):
                pass  # the deletion before it was judged
            elif event.kind == "delete":
                self._see_deletion(event)
                left = frozenset(self.world.keys(""))
                for problem in self.deletions.problems(event.key, self._entries, self._pointers, left):
                    self.history.problems.append(f"{event.at:.3f} s: {problem}")
                if event.key.startswith(self.paths.transactions) and not self.deletions.has_marker(event.key, left):
                    self._outlived.add(event.key)
            elif event.key.startswith(self.paths.markers):
                self._see_slot(event.at, event.key, self._read(event.key))
            elif event.key.startswith(self.paths.pointers):
                self._see_pointer(event.at, self._read(event.key))
            elif event.key == self.paths.manifest:
                self._see_registry(event.at, self._body(event.key))
            elif event.key.startswith(self.paths.metadata_claims):
                claim = self._read(event.key)
                if claim["claim"] == "removed":
                    self.history.claimed_to_remove.add(text(claim, "file"))
            elif event.key.startswith(self.paths.transactions):
                self._see_transaction(event.at, self._read(event.key))
        except Lie as lie:
            self.history.problems.append(f"{event.at:.3f} s: {lie}")

    def _body(self, key: str) -> bytes:
        body = self.world.peek(key)
        if body is None:
            raise Lie(f"{key} is not there")
        return body

    def _read(self, key: str) -> JsonObject:
        document = loads(self._body(key))
        assert isinstance(document, dict)
        return document

    def _become(self, at: float, state: CatalogState) -> None:
        if state != self.history.state:
            self.history.moments.append(Moment(at, state))

    def _committed(self, transaction: object) -> bool:
        known = self.history.transactions.get(transaction) if isinstance(transaction, str) else None
        return known is not None and known.committed

    # Pointers.

    def _see_pointer(self, at: float, pointer: JsonObject) -> None:
        entity = text(pointer, "entity")
        stood_on = self._written_at.get(entity, 0.0)
        self._pointers[entity], self._written_at[entity] = pointer, at
        transaction = mapping(pointer, "intent").get("transaction")
        if isinstance(transaction, str):
            self._laid_on.setdefault((entity, transaction), stood_on)
            self.history.transactions.setdefault(transaction, Transaction(at)).entities.setdefault(entity, at)
        if entity in self.history.state.files:
            self._refresh(at, entity, stood_on)

    def effective(self, entity: str) -> JsonObject:
        """A pointer as a reader must take it."""
        pointer = self._pointers[entity]
        intent = mapping(pointer, "intent")
        return {**pointer, **mapping(intent, "state")} if self._committed(intent.get("transaction")) else pointer

    def _refresh(self, at: float, entity: str, stood_on: float) -> None:
        """Looks whether an entity's effective state is another now, and whose work that is."""
        state, pointer = self.history.state, self.effective(entity)
        before, file = state.files[entity], text(pointer, "metadata_location")
        mark = optional_text(mapping(pointer, "dropped"), "operation")
        self._become(at, replace(state, files={**state.files, entity: file}, marks={**state.marks, entity: mark}))
        if file == before:
            return
        base = mapping(pointer, "base").get("metadata_location")
        if base != before:
            raise Lie(f"{entity} lost the commit that made {before}")
        self._became_current(at, pointer, before, stood_on, "commit")

    def _became_current(self, at: float, pointer: JsonObject, base: str | None, since: float, kind: str) -> None:
        """A metadata file of ours is now what readers see: its pending receipt must be there and tell whose it is."""
        entity, file = text(pointer, "entity"), text(pointer, "metadata_location")
        ms = integer(pointer, "metadata_ms")
        document = self.document(file)
        if pointer.get("type") == "table" and document.get("last-updated-ms") != ms:
            raise Lie(f"{entity} has another time than its file {file}")
        others = [other for other, location, _ in self.history.current if location == file and other != entity]
        if others:
            raise Lie(f"{file} is the state of {entity} and of {others}")
        if any(location == file for _, location, _ in self.history.current):
            raise Lie(f"{file} became current twice")
        self.history.current.append((entity, file, ms))
        said = self._read(self.paths.receipt("pending", commit_key(entity, file), ms))
        unit, principal = text(said, "attempt"), text(said, "principal")
        name: Name = (texts(said, "namespace"), text(said, "name"))
        decided = self.history.transactions.get(unit)
        if decided is not None and not decided.committed:
            raise Lie(f"{principal}: {unit} shows, and did not commit")
        self._effect(Effect(at, principal, unit, kind, entity, name, file, base, since))
        if principal == WORKER and base is not None:
            manifests = self.history.manifests
            left = {*manifests.files_of(self.document(base))} - {*manifests.files_of(document)}
            self._expired.update(dict.fromkeys(left, (entity, at)))

    def document(self, file: str) -> JsonObject:
        """A metadata file."""
        if file not in self.history.documents:
            document = self.history.documents[file] = self._read(file.removeprefix(STORE))
            self.history.manifests.read(document, lambda each: self._body(each.removeprefix(STORE)))
        return self.history.documents[file]

    def _effect(self, effect: Effect) -> None:
        process = self._event.process
        self.history.effects.append(replace(effect, process=process, sent=self._sent_at()))
        if effect.unit in self.deletions.expired:
            raise Lie(f"{effect.unit} of {effect.principal} took effect after its marker was collected")

    def _sent_at(self) -> float:
        """When the write that is seen was sent first: the same one may have been sent again."""
        event, sent = self._event, [each for each in self.world.history if each.step.startswith("sent")]
        condition = next((e.detail for e in sent if (e.process, e.number) == (event.process, event.number)), None)
        same = (event.process, event.key, condition)
        return next((e.at for e in sent if (e.process, e.key, e.detail) == same), event.at)

    # Transactions.

    def _see_transaction(self, at: float, decision: JsonObject) -> None:
        transaction, status = text(decision, "transaction"), text(decision, "status")
        known = self.history.transactions.setdefault(transaction, Transaction(at))
        if known.decided <= at:
            self._see_collected_transaction(transaction, status)
            return
        if status == "pending":
            return
        known.decided, known.committed = at, status == "committed"
        if not known.committed:
            return
        for member in sequence(decision, "tables"):
            assert isinstance(member, dict)
            entity = text(member, "entity")
            if member["version"] is None:
                continue
            if mapping(self._pointers[entity], "intent").get("transaction") != transaction:
                raise Lie(f"{transaction} committed without its intent on {entity}")
            if entity in self.history.state.files:
                self._refresh(at, entity, self._laid_on[entity, transaction])
        self._see_names(at, [])

    def _see_collected_transaction(self, transaction: str, status: str) -> None:
        """Judges a write of a decided transaction. After its decision was collected and no marker needed it, a late
        create may land, and a collection that began before may close it, once. It never commits again."""
        key = self._event.key
        if key not in self._outlived or status == "committed":
            raise Lie(f"{transaction} was decided twice")
        if status == "aborted":
            self._outlived.discard(key)

    # Keys.

    def _see_slot(self, at: float, key: str, slot: JsonObject) -> None:
        self.deletions.add_slot(key, slot)
        principal = optional_text(mapping(slot, "request"), "principal")
        answer = mapping(slot, "answer")
        if principal is not None and CLOSED not in answer:
            self.history.begun.setdefault(principal, at)
        elif principal is not None and KEYLESS in answer:
            self.history.keyless.add(principal)

    def _see_key_policy(self, at: float, head: RegistryState) -> None:
        policy = KeyPolicy() if head.key_settings is None else head.key_settings.policy
        if policy != self.history.key_policies[-1][1]:
            self.history.key_policies.append((at, policy))

    # The registry.

    def _see_registry(self, at: float, body: bytes) -> None:
        head = RegistryState.parse(body, None, "HEAD")
        if head_as_of(head.id or "", self.world.peek, self.paths) != body:
            raise Lie("HEAD's commit is not stored")
        self._see_key_policy(at, head)
        self._entries = dict(head.with_segments(self._segment).index.scan(""))
        operations = [item for item in sequence(head.document, "operations") if isinstance(item, dict)]
        for transaction in {entry.get("transaction") for entry in self._entries.values()}:
            if isinstance(transaction, str):
                known = self.history.transactions.setdefault(transaction, Transaction(at))
                for key, entry in self._entries.items():
                    if entry.get("transaction") == transaction and key.startswith("relation\n"):
                        known.names.setdefault(_name(key), at)
        self._see_names(at, operations)

    def _segment(self, segment: str) -> Segment:
        if segment not in self._segments:
            key = self.paths.index_segment(segment)
            self._segments[segment] = Segment.parse(segment, self._body(key), key)
        return self._segments[segment]

    def _see_names(self, at: float, operations: list[JsonObject]) -> None:
        """What names mean now. It must follow from what they meant before, and from what was done."""
        before = self.history.state
        seen = self._shown(before)
        made = [
            name
            for name, relation in seen.names.items()
            if relation.kind in ("table", "view") and relation.entity not in before.files
        ]
        self._become(at, seen)
        for operation in operations:
            kind = text(operation, "kind")
            if kind not in OWN:
                entity, principal = optional_text(operation, "entity") or "", text(operation, "principal")
                name = (texts(operation, "namespace"), optional_text(operation, "name") or "")
                if not kind.startswith("create-") or kind in WITHOUT_POINTER:
                    self._effect(Effect(at, principal, text(operation, "id"), kind, entity, name))
        for name in made:
            relation = seen.names[name]
            if relation.entity in seen.files and relation.entity not in self._pointers:
                continue  # it follows another catalog's
            pointer = self._pointers.get(relation.entity)
            if pointer is None:
                raise Lie(f"{name} means {relation.entity}, which has no pointer")
            registered = optional_text(mapping(pointer, "origin"), "registered")
            if registered is None:
                self._became_current(at, pointer, None, 0.0, "create")
            else:
                self.document(registered)
        expected = done(before, [_as_forgotten(operation, seen) for operation in operations])
        if not operations:  # a transaction was decided: what it made
            expected = replace(expected, names={**expected.names, **{name: seen.names[name] for name in made}})
        wrong = differences(expected, seen)
        if wrong is not None:
            raise Lie(wrong)
        self.history.moments[-1] = Moment(self.history.moments[-1].at, in_order(self.history.state, expected))

    def _shown(self, before: CatalogState) -> CatalogState:
        names: dict[Name, Relation] = {}
        stones: dict[Name, tuple[Stone, ...]] = {}
        namespaces: dict[Namespace, str] = {}
        files, marks = dict(before.files), dict(before.marks)
        governance: dict[str, Mapping[str, str]] = {}
        spaces: dict[Namespace, str] = {}
        models: dict[str, str] = {}
        for key, entry in self._entries.items():
            transaction = entry.get("transaction")
            if key.startswith("namespace\n"):
                _, parent, name = key.split("\n")
                value = namespaces[(*filter(None, parent.split("\t")), name)] = text(entry, "value")
                if value not in self.history.properties:
                    stored = self._read(self.paths.entity_value("namespace", value))
                    self.history.properties[value] = mapping(stored, "properties")
                spaces[(*filter(None, parent.split("\t")), name)] = text(entry, "entity")
                governance[text(entry, "entity")] = own = governance_of(self.history.properties[value])
                if NamespaceEntry(entry).is_protected != is_protected(own):
                    raise Lie(f"the entry of namespace {name} does not repeat whether it is protected")
            elif key.startswith("relation\n") and (transaction is None or self._committed(transaction)):
                entity = text(entry, "entity")
                names[_name(key)] = Relation(text(entry, "type"), entity, texts(entry, "locations"))
                governance[entity] = RelationEntry(entry).governance
                if names[_name(key)].kind == "semantic-model":
                    models[entity] = text(entry, "value")
                if (followed := FollowedTable.of(entry)) is not None:
                    files[entity] = followed.metadata.location
                    self.document(files[entity])
                elif entity not in files and entity in self._pointers:
                    files[entity], marks[entity] = text(self._pointers[entity], "metadata_location"), None
            elif key.startswith("tombstone\n"):
                name_of = (texts(entry, "namespace"), text(entry, "name"))
                state = Tombstone(entry).state
                entity, kind, operation = text(entry, "entity"), text(entry, "type"), text(entry, "operation")
                governance.setdefault(entity, RelationEntry(entry).governance)
                purging, purged, home = state == PURGING, state == PURGED, Tombstone(entry).namespace_entity
                stone = Stone(entity, kind, operation, purging, texts(entry, "locations"), purged, home)
                stones[name_of] = (*stones.get(name_of, ()), stone)
        governed = {entity: said for entity, said in governance.items() if said}
        policies, attached = self._policies(names)
        return CatalogState(
            namespaces,
            names,
            stones,
            files,
            governed,
            marks,
            policies,
            attached,
            models,
            spaces,
            before.notified,
            before.retired,
        )

    def _policies(self, names: Mapping[Name, Relation]) -> tuple[Mapping[Name, Policy], frozenset[tuple[str, str]]]:
        """Policies, and what they are attached to, which both sides must say, and by the name that it has."""
        policies: dict[Name, Policy] = {}
        attached: set[tuple[str, str]] = set()
        targets: set[tuple[str, str]] = set()
        living = {relation.entity: name for name, relation in names.items()}
        for key, entry in self._entries.items():
            kind, one, other = key.split("\n")[:3]
            if kind == "policy":
                found = PolicyEntry(entry)
                policies[_name(key)] = Policy(found.entity, found.policy_type, found.version)
            elif kind == "policy-attached":
                attached.add((one, other))
            elif kind == "policy-target":
                targets.add((other, one))
                name = (texts(entry, "namespace"), optional_text(entry, "name") or "")
                if living.get(other, name) != name:
                    raise Lie(f"{other} is {living[other]} now, and its policies say {name}")
        if attached != targets:
            raise Lie(f"{sorted(attached)} are attached from the one side, and {sorted(targets)} from the other")
        return policies, frozenset(attached)

    # Files.

    def _see_deletion(self, event: Event) -> None:
        file = STORE + event.key
        if not file.endswith((".metadata.json", ".avro", ".parquet")):
            return
        named = {
            text(entry, "entity")
            for key, entry in self._entries.items()
            if key[:4] == "rela" or (key[:4] == "tomb" and Tombstone(entry).state == DROPPED)
        }
        needed = None
        for entity in sorted(named & set(self._pointers)):
            pointer = self._pointers[entity]
            waiting = mapping(mapping(pointer, "intent"), "state").get("metadata_location")
            undecided = not self._decided_against(pointer)
            current = text(self.effective(entity), "metadata_location")
            if file in self._relied_on(current) or (undecided and file in self._relied_on(waiting)):
                needed = entity
        expired, at = self._expired.get(file, ("", 0.0))
        if needed is None and expired in named and event.at - at < FILES_AGE_MS / 1000 - WHOLE_SECONDS:
            needed = f"a reader of {expired}, of which the snapshot expired {event.at - at:.0f} s before,"
        self.history.deletions.append(Deletion(event.at, file, needed))

    def _relied_on(self, metadata: object) -> set[object]:
        """A metadata file, and the files that it names."""
        document = self.history.documents.get(str(metadata))
        return {metadata, *(() if document is None else self.history.manifests.files_of(document))}

    def _decided_against(self, pointer: JsonObject) -> bool:
        known = self.history.transactions.get(str(mapping(pointer, "intent").get("transaction")))
        return known is not None and known.decided < float("inf") and not known.committed


def _deleted_nothing(event: Event) -> bool:
    """Whether a delete found no object, as the slower of two collections does."""
    return isinstance(event.detail, Applied) and event.detail.version == ""


def _as_forgotten(operation: JsonObject, seen: CatalogState) -> JsonObject:
    """An operation that collects tombstones names also those that it left alone: the drop was undone meanwhile."""
    if operation.get("kind") != "collect-tombstones":
        return operation
    left = {stone.entity for stones in seen.stones.values() for stone in stones}
    return {**operation, "entities": [each for each in texts(operation, "entities") if each not in left]}


def _name(key: str) -> Name:
    _, parent, name = key.split("\n")
    return (tuple(parent.split("\t")), name)
