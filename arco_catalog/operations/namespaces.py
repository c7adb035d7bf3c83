"""Namespaces: create, load, change, drop."""

import hashlib
from collections.abc import Mapping, Sequence

from arco_catalog.iceberg.errors import AlreadyExists, BadRequest, NamespaceNotEmpty, NoSuchWarehouse, Unprocessable
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.shapes import quoted
from arco_catalog.planning.answers import Answer, Document, NamespaceValue
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.names import dotted, existing_namespace
from arco_catalog.planning.overlap import refuse_outside
from arco_catalog.planning.registry_change import Change
from arco_catalog.planning.writes import RecordWrite
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.lookup import load, namespace_entry
from arco_catalog.protocol.mutation import NoOp
from arco_catalog.protocol.rebuilding import described
from arco_catalog.protocol.registry_mutation import RegistryMutation, RegistryReadSet
from arco_catalog.state.access import encode_value
from arco_catalog.state.catalog_state import CATALOG_STATE, is_dropping
from arco_catalog.state.entries import NamespaceEntry, RelationEntry, find_namespace
from arco_catalog.state.index import Edits, Index, Namespace, namespace_key, namespaces_in, relations_in
from arco_catalog.state.locations import Location, slug
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.roles import edits_without_grants, grants_on

LOCATION = "location"

MAX_KEY_BYTES = 512
"""Of a property's name."""
MAX_VALUE_BYTES = 64 << 10
"""Of its value."""
MAX_PROPERTIES_BYTES = 256 << 10
"""Of all names and values of one namespace."""
MOST_PROPERTIES = 100_000
"""More have no room in that: there are only so many names of one or two bytes."""
MAX_REMOVALS = 1_000
"""Names in one request to remove properties: the answer repeats them."""


async def create_namespace(session: Session, namespace: Namespace, properties: Mapping[str, str]) -> Answer:
    """Makes a namespace inside an existing one. `location`, where its tables go, is chosen if not given."""
    return await run(session, _Create(session, namespace, properties))


def namespace_creation(session: Session, namespace: Namespace, properties: Mapping[str, str]) -> RegistryMutation:
    """The same as a mutation, to be planned and not carried out (rehearsal.py)."""
    return _Create(session, namespace, properties)


async def load_namespace(session: Session, namespace: Namespace) -> JsonObject:
    """The namespace and its properties. Raises `NoSuchNamespace`."""
    entry = await _existing(session, namespace)
    return described(namespace, await session.state.namespace_properties(entry.value))


async def require_namespace(session: Session, namespace: Namespace) -> None:
    """Raises `NoSuchNamespace` if the namespace does not exist."""
    await _existing(session, namespace)


async def _existing(session: Session, namespace: Namespace) -> NamespaceEntry:
    head = await session.head()
    await load(session.state, head.index, Needs(keys=[namespace_key(namespace)]))
    return existing_namespace(head.index, namespace)


async def update_properties(
    session: Session, namespace: Namespace, removals: Sequence[str], updates: Mapping[str, str]
) -> Answer:
    """Sets and removes properties; a key in both is `Unprocessable`."""
    return await run(session, _UpdateProperties(session, namespace, removals, updates))


async def drop_namespace(session: Session, namespace: Namespace) -> Answer:
    """Drops an empty namespace: one registry commit that saw it empty."""
    return await run(session, _Drop(session, namespace))


def check_properties(
    namespace: Namespace, updates: Mapping[str, JsonValue], after: Mapping[str, JsonValue], before: int = 0
) -> None:
    """Raises `BadRequest` for a property that is too long, or if all are together and take more than `before` bytes,
    which they did already."""
    if len(updates) > MOST_PROPERTIES and before <= MAX_PROPERTIES_BYTES:  # before each of them is looked at
        raise BadRequest(
            f"The properties of namespace {dotted(namespace)} would be {len(after):,}, which take more than "
            f"{MAX_PROPERTIES_BYTES:,} bytes"
        )
    for name, value in updates.items():
        what = f"Invalid property {quoted(name)} of namespace {dotted(namespace)}"
        if (size := len(name.encode())) > MAX_KEY_BYTES:
            raise BadRequest(f"{what}: its name is {size:,} bytes long, more than {MAX_KEY_BYTES:,}")
        if (size := len(str(value).encode())) > MAX_VALUE_BYTES:
            raise BadRequest(f"{what}: its value is {size:,} bytes long, more than {MAX_VALUE_BYTES:,}")
    total = size_of(after)
    if total > max(MAX_PROPERTIES_BYTES, before):
        largest = max(updates or after, key=lambda name: len(name) + len(str(after.get(name))))
        raise BadRequest(
            f"The properties of namespace {dotted(namespace)} would be {total:,} bytes, more than "
            f"{MAX_PROPERTIES_BYTES:,}; the longest of those given is {quoted(largest)}"
        )


def check_removals(number: int) -> None:
    """Raises `BadRequest` for more removals than one request may ask for."""
    if number > MAX_REMOVALS:
        raise BadRequest(f"One request may remove {MAX_REMOVALS:,} properties at most, not {number:,}")


def size_of(properties: Mapping[str, JsonValue]) -> int:
    """Bytes of names and values together."""
    return sum(len(name.encode()) + len(str(value).encode()) for name, value in properties.items())


class _NamespaceChange(RegistryMutation):
    def __init__(self, session: Session, namespace: Namespace) -> None:
        super().__init__(session)
        self.namespace = namespace

    def value(
        self, attempt: Attempt, properties: JsonObject, answer: JsonObject | None = None
    ) -> tuple[str, RecordWrite]:
        """An immutable value, fresh for the attempt, and the object that holds it. The same properties, with the same
        answer, are the same value."""
        body = encode_value(properties, answer)
        self.context.check_properties(body, dotted(self.namespace))
        value = f"{attempt.id}-{hashlib.sha256(body).hexdigest()[:16]}"
        return value, RecordWrite(self.context.paths.entity_value("namespace", value), body)

    def allowed_location(self, index: Index, properties: Mapping[str, JsonValue], now: str | None = None) -> Steps[str]:
        """Where the namespace's tables go; what it has `now` it may keep. Raises `BadRequest` outside the allowed
        locations, and `Forbidden`."""
        asked, default = properties.get(LOCATION), self.default_location(index)
        if not isinstance(asked, str):
            return default.uri
        location = self.context.locations.check(asked)
        if location.uri != now:
            yield from refuse_outside(self.context, index, [location], default)
        return location.uri

    @property
    def keys(self) -> list[str]:
        """Its own in the index, and its parent's, whose location it is made in."""
        return [namespace_key(level) for level in (self.namespace, self.namespace[:-1]) if level]

    def default_location(self, index: Index) -> Location:
        """Inside the parent's location. Shared by namespaces whose names look alike, which does no harm: what lies in
        it carries its entity's id."""
        parent = find_namespace(index, self.namespace[:-1])
        base = self.context.warehouse if parent is None else Location.parse(parent.location)
        return base.below(slug(self.namespace[-1]))


class _Create(_NamespaceChange):
    kind = "create-namespace"

    def __init__(self, session: Session, namespace: Namespace, properties: Mapping[str, str]) -> None:
        super().__init__(session, namespace)
        self.properties = properties

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        index = read_set.head.index
        yield Needs(keys=[*self.keys, CATALOG_STATE] if self.session.settings.has_grants else self.keys)
        if self.session.settings.has_grants and is_dropping(index):
            raise NoSuchWarehouse(f"Warehouse does not exist: {self.session.settings.warehouse}")
        if self.namespace[:-1]:
            existing_namespace(index, self.namespace[:-1])
        if find_namespace(index, self.namespace) is not None:
            raise AlreadyExists(f"Namespace already exists: {dotted(self.namespace)}")
        location = yield from self.allowed_location(index, self.properties)
        properties: JsonObject = {**self.properties, LOCATION: self.properties.get(LOCATION, location)}
        check_properties(self.namespace, properties, properties)
        value, write = self.value(attempt, properties)
        entry = NamespaceEntry.new(entity=attempt.entity, value=value, location=location)
        return Change(
            edits={namespace_key(self.namespace): entry.json},
            answer=Document(200, described(self.namespace, properties), NamespaceValue(value, self.namespace)),
            detail={"namespace": [*self.namespace], "entity": attempt.entity},
            first=[write],
        )


class _UpdateProperties(_NamespaceChange):
    kind = "update-namespace"

    def __init__(
        self, session: Session, namespace: Namespace, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        super().__init__(session, namespace)
        self.removals = list(dict.fromkeys(removals))
        self.updates = updates
        self._known: dict[str, JsonObject] = {}

    def needs_base(self, read_set: RegistryReadSet) -> bool:
        index = read_set.head.index
        if index.missing(Needs(keys=self.keys)):
            return True
        entry = find_namespace(index, self.namespace)
        return entry is not None and entry.value not in self._known

    async def load_base(self, read_set: RegistryReadSet) -> None:
        entry = await namespace_entry(self.state, read_set.head.index, self.namespace)
        if entry is not None:
            self._known[entry.value] = await self.state.namespace_properties(entry.value)

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change | NoOp]:
        yield Needs(keys=self.keys)
        check_removals(len(self.removals))
        both = sorted(set(self.removals) & set(self.updates))
        if both:
            raise Unprocessable(f"Invalid namespace update, cannot both set and remove: {', '.join(both)}")
        entry = existing_namespace(read_set.head.index, self.namespace)
        before = self._known[entry.value]
        removed = {key: None for key in self.removals if key in before}  # in order, and looked up at once
        properties: JsonObject = {key: value for key, value in before.items() if key not in removed}
        properties.update(self.updates)
        location = yield from self.allowed_location(read_set.head.index, properties, entry.location)
        told: JsonObject = {
            "updated": [*self.updates],
            "removed": [*removed],
            "missing": [key for key in self.removals if key not in before],
        }
        if properties == before:
            return NoOp(Document(200, told))
        check_properties(self.namespace, dict(self.updates), properties, size_of(before))
        value, write = self.value(attempt, properties, told)
        return Change(
            edits={namespace_key(self.namespace): entry.with_value(value, location).json},
            answer=Document(200, told, NamespaceValue(value, self.namespace)),
            detail={"namespace": [*self.namespace], "entity": entry.entity},
            first=[write],
        )


class _Drop(_NamespaceChange):
    kind = "drop-namespace"

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        index = read_set.head.index
        relations = Scan(relations_in(self.namespace), until=lambda entry: "transaction" not in entry)
        namespaces = Scan(namespaces_in(self.namespace), until=lambda entry: True)
        yield Needs(keys=[namespace_key(self.namespace)], scans=[relations, namespaces])
        entry = existing_namespace(index, self.namespace)
        intents = self._intents(index)
        if intents is None or index.any_in(namespaces_in(self.namespace)):
            raise NamespaceNotEmpty(f"Namespace {dotted(self.namespace)} is not empty")
        for intent in intents:
            intent.require_committed()
        grants: Edits = {}
        if self.session.settings.has_grants:
            yield Needs(scans=[Scan(grants_on(entry.entity))])
            grants = edits_without_grants(index, entry.entity)
        return Change(
            edits={namespace_key(self.namespace): None, **grants},
            answer=Document(204),
            detail={"namespace": [*self.namespace], "entity": entry.entity},
        )

    def _intents(self, index: Index) -> list[RelationEntry] | None:
        """The intents on names in it; None if a table or view is there, whatever becomes of those."""
        intents: list[RelationEntry] = []
        for _, held in index.scan(relations_in(self.namespace)):
            entry = RelationEntry(held)
            if entry.transaction is None:
                return None
            intents.append(entry)
        return intents
