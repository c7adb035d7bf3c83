"""Creates, loads, changes and drops namespaces."""

import hashlib
from collections.abc import Mapping, Sequence

from arco_catalog.iceberg.errors import AlreadyExists, BadRequest, NamespaceNotEmpty, NoSuchWarehouse, Unprocessable
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.properties import refuse_reserved
from arco_catalog.operations.properties import check_properties, size_of
from arco_catalog.planning.answers import Answer, Document, EntityValue
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.context import Context
from arco_catalog.planning.governance import refuse_governance
from arco_catalog.planning.names import dotted, existing_namespace
from arco_catalog.planning.overlap import check_inside
from arco_catalog.planning.protection import refuse_protected_namespace
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
from arco_catalog.state.fields import mapping
from arco_catalog.state.index import Edits, Index, Namespace, namespace_key, namespaces_in, relations_in
from arco_catalog.state.locations import Location, slug
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.policies import attached_to, edits_without_attachments, policies_in
from arco_catalog.state.roles import edits_without_grants, grants_on

LOCATION = "location"

MAX_REMOVALS = 1_000
"""Maximum number of properties that one request may remove: the answer repeats their names."""


async def create_namespace(session: Session, namespace: Namespace, properties: Mapping[str, str]) -> Answer:
    """Creates a namespace. The property `location`, where its tables are made, has a default inside the parent's
    location, or the catalog's. Raises `NoSuchNamespace` for the parent, `AlreadyExists`, `NoSuchWarehouse` if the
    catalog is being dropped, `BadRequest` for a location that is not allowed and for properties that are reserved or
    too large, and `Forbidden` for a location that the caller may not choose."""
    return await run(session, _Create(session, namespace, properties))


def namespace_creation(session: Session, namespace: Namespace, properties: Mapping[str, str]) -> RegistryMutation:
    """Returns `create_namespace` as a mutation that can be planned without a write, for a rehearsal of an import."""
    return _Create(session, namespace, properties)


async def load_namespace(session: Session, namespace: Namespace) -> JsonObject:
    """Returns the namespace with its properties, as a LoadNamespaceResponse. Raises `NoSuchNamespace`."""
    return described(namespace, await namespace_properties(session, namespace))


async def namespace_properties(session: Session, namespace: Namespace) -> JsonObject:
    """Returns the properties of a namespace, including the governance. Raises `NoSuchNamespace`."""
    entry = await _existing(session, namespace)
    return await session.state.namespace_properties(entry.value)


async def require_namespace(session: Session, namespace: Namespace) -> None:
    """Raises `NoSuchNamespace` if the namespace does not exist."""
    await _existing(session, namespace)


async def _existing(session: Session, namespace: Namespace) -> NamespaceEntry:
    """Returns the entry of a namespace by the current HEAD, if the caller has the rights on it. Raises
    `NoSuchNamespace`, and the errors of `Session.head`."""
    head = await session.head()
    await load(session.state, head.index, Needs(keys=[namespace_key(namespace)]))
    return existing_namespace(head.index, namespace)


async def update_properties(
    session: Session, namespace: Namespace, removals: Sequence[str], updates: Mapping[str, str]
) -> Answer:
    """Sets and removes properties of a namespace, by a registry commit unless none of them changes, and answers with
    the names that were set, that were removed, and that were to be removed and the namespace did not have. Raises
    `NoSuchNamespace`, `Unprocessable` for a key in both `removals` and `updates`, `BadRequest` for too many removals,
    for a change of reserved properties or governance, for properties that are too large, and for a new location that is
    not allowed, and `Forbidden` for a new one that the caller may not choose. The present location needs no check."""
    return await run(session, _UpdateProperties(session, namespace, removals, updates))


async def drop_namespace(session: Session, namespace: Namespace) -> Answer:
    """Drops an empty namespace, with grants on it and attachments of policies to it. The registry commit that drops it
    is based on a HEAD in which it is empty. Raises `NoSuchNamespace`, `CommitFailed` for a protected namespace, and
    `NamespaceNotEmpty` if a relation, namespace or policy is in it."""
    return await run(session, _Drop(session, namespace))


def check_removals(number: int) -> None:
    """Raises `BadRequest` if a request removes more than `MAX_REMOVALS` properties of a namespace."""
    if number > MAX_REMOVALS:
        raise BadRequest(
            f"One request may remove at most {MAX_REMOVALS:,} properties, not {number:,}: send several requests"
        )


def namespace_value(
    context: Context,
    attempt: Attempt,
    namespace: Namespace,
    properties: JsonObject,
    answer: JsonObject | None = None,
    replaced: JsonObject | None = None,
) -> tuple[str, RecordWrite]:
    """Returns the id of an immutable value with these properties, and with `answer`, the body of the answer to the
    change, if that is another document; and the write of the value. The id is the attempt's with a hash of the value,
    so another attempt never has it. The value also has those fields of the `replaced` one that this version of the
    program does not know. Raises `AnswerTooLarge` if the host could not carry an answer with the properties."""
    body = encode_value(properties, answer, replaced)
    context.check_properties(body, dotted(namespace))
    value = f"{attempt.id}-{hashlib.sha256(body).hexdigest()[:16]}"
    return value, RecordWrite(context.paths.entity_value("namespace", value), body)


class _NamespaceChange(RegistryMutation):
    def __init__(self, session: Session, namespace: Namespace) -> None:
        super().__init__(session)
        self.namespace = namespace

    def value(
        self,
        attempt: Attempt,
        properties: JsonObject,
        answer: JsonObject | None = None,
        replaced: JsonObject | None = None,
    ) -> tuple[str, RecordWrite]:
        """Returns the id of an immutable value with the namespace's properties, and the write of the value, as
        `namespace_value` does."""
        return namespace_value(self.context, attempt, self.namespace, properties, answer, replaced)

    def allowed_location(self, index: Index, properties: Mapping[str, JsonValue], now: str | None = None) -> Steps[str]:
        """Computes the location for the namespace's tables: that of the properties, or else the default. Raises
        `BadRequest` for a location that is not allowed, and `Forbidden` for one outside of the default location that
        the caller may not choose, unless it is the current one, `now`."""
        given, default = properties.get(LOCATION), self.default_location(index)
        if not isinstance(given, str):
            return default.uri
        location = self.context.locations.check(given)
        if location.uri != now:
            yield from check_inside(self.context, index, [location], default)
        return location.uri

    @property
    def keys(self) -> list[str]:
        """Index keys of the namespace and of its parent, if it has one: the parent's location contains the default
        one."""
        return [namespace_key(level) for level in (self.namespace, self.namespace[:-1]) if level]

    def default_location(self, index: Index) -> Location:
        """Returns a folder inside the parent's location, or inside the catalog's for a namespace without a parent.
        Namespaces with similar names may share it, because the folders of their tables have the tables' entity ids."""
        parent = find_namespace(index, self.namespace[:-1])
        base = self.context.warehouse if parent is None else Location.parse(parent.location)
        return base.below(slug(self.namespace[-1]))


class _Create(_NamespaceChange):
    kind = "create-namespace"

    def __init__(self, session: Session, namespace: Namespace, properties: Mapping[str, str]) -> None:
        super().__init__(session, namespace)
        self.properties = properties

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the creation of the namespace with the location in the properties, or else the default one. Raises
        `NoSuchWarehouse` if the catalog is being dropped, `NoSuchNamespace` for the parent, `AlreadyExists`,
        an error for reserved or too large properties and a location that is not allowed, and `Forbidden` for one
        that the caller may not use."""
        index = read_set.head.index
        yield Needs(keys=[*self.keys, CATALOG_STATE] if self.session.settings.has_grants else self.keys)
        if self.session.settings.has_grants and is_dropping(index):
            raise NoSuchWarehouse(
                f"Warehouse does not exist: {self.session.settings.warehouse} is being dropped or was dropped"
            )
        if self.namespace[:-1]:
            existing_namespace(index, self.namespace[:-1])
        if find_namespace(index, self.namespace) is not None:
            raise AlreadyExists(f"Namespace already exists: {dotted(self.namespace)}")
        refuse_reserved(self.properties)
        location = yield from self.allowed_location(index, self.properties)
        properties: JsonObject = {**self.properties, LOCATION: self.properties.get(LOCATION, location)}
        check_properties(f"namespace {dotted(self.namespace)}", properties, properties)
        value, write = self.value(attempt, properties)
        entry = NamespaceEntry.new(entity=attempt.entity, value=value, location=location)
        return Change(
            edits={namespace_key(self.namespace): entry.json},
            answer=Document(
                200, described(self.namespace, properties), EntityValue("namespace", value, self.namespace)
            ),
            detail={"namespace": [*self.namespace], "entity": attempt.entity},
            first=[write],
        )


class PropertiesChange(_NamespaceChange):
    """The base of changes of a namespace's properties that depend on the current ones, which they load first."""

    def __init__(self, session: Session, namespace: Namespace) -> None:
        super().__init__(session, namespace)
        self._known: dict[str, JsonObject] = {}

    def needs_base(self, read_set: RegistryReadSet) -> bool:
        """Whether `load_base` must be called: the namespace or the parent is not loaded, or the present properties were
        not read yet. False if the namespace does not exist."""
        index = read_set.head.index
        if index.missing(Needs(keys=self.keys)):
            return True
        entry = find_namespace(index, self.namespace)
        return entry is not None and entry.value not in self._known

    async def load_base(self, read_set: RegistryReadSet) -> None:
        """Loads the namespace's entry, reads the properties of it from the store, and keeps them for `change`; reads
        none if the namespace does not exist."""
        entry = await namespace_entry(self.state, read_set.head.index, self.namespace)
        if entry is not None:
            self._known[entry.value] = await self.state.namespace_value(entry.value)

    def properties(self, entry: NamespaceEntry) -> JsonObject:
        """Returns the properties of the namespace with this entry, which `load_base` must have read."""
        return mapping(self._known[entry.value], "properties")

    def changed(
        self,
        attempt: Attempt,
        entry: NamespaceEntry,
        location: str,
        properties: JsonObject,
        body: JsonObject,
        detail: JsonObject,
    ) -> Change:
        """Returns the change that stores these properties and this location of the namespace, is answered with `body`,
        and has `detail` in the history."""
        value, write = self.value(attempt, properties, body, self._known[entry.value])
        return Change(
            edits={namespace_key(self.namespace): entry.with_value(value, location).json},
            answer=Document(200, body, EntityValue("namespace", value, self.namespace)),
            detail={"namespace": [*self.namespace], "entity": entry.entity, **detail},
            first=[write],
        )


class _UpdateProperties(PropertiesChange):
    kind = "update-namespace"

    def __init__(
        self, session: Session, namespace: Namespace, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        super().__init__(session, namespace)
        self.removals = list(dict.fromkeys(removals))
        self.updates = updates

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change | NoOp]:
        """Plans the change of the properties, and the names that were updated, removed and missing for the response;
        `NoOp` if no value differs. Raises an error for too many removals, for properties and a location that are
        not allowed, `Unprocessable` for a name in both lists, `NoSuchNamespace`, and an error for a location that
        the caller may not use."""
        yield Needs(keys=self.keys)
        check_removals(len(self.removals))
        both = sorted(set(self.removals) & set(self.updates))
        if both:
            raise Unprocessable(f"Invalid namespace update, cannot both set and remove: {', '.join(both)}")
        entry = existing_namespace(read_set.head.index, self.namespace)
        before = self.properties(entry)
        refuse_governance(self.removals, self.updates, before)
        removed = {key: None for key in self.removals if key in before}  # a dict: a set that has an order
        properties: JsonObject = {key: value for key, value in before.items() if key not in removed}
        properties.update(self.updates)
        location = entry.location
        if properties.get(LOCATION) != before.get(LOCATION):  # the operator may no longer allow the present one
            location = yield from self.allowed_location(read_set.head.index, properties, location)
        body: JsonObject = {
            "updated": [*self.updates],
            "removed": [*removed],
            "missing": [key for key in self.removals if key not in before],
        }
        if properties == before:
            return NoOp(Document(200, body))
        check_properties(f"namespace {dotted(self.namespace)}", dict(self.updates), properties, size_of(before))
        return self.changed(attempt, entry, location, properties, body, {})


class _Drop(_NamespaceChange):
    kind = "drop-namespace"

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the drop of the namespace, with the grants on it and the attachments of policies, if it is empty.
        Raises `NoSuchNamespace`, `CommitFailed` for a protected one, `NamespaceNotEmpty`, and `PendingTransaction` if
        all that it has are intents of transactions."""
        index = read_set.head.index
        relations = Scan(relations_in(self.namespace), until=lambda entry: "transaction" not in entry)
        namespaces = Scan(namespaces_in(self.namespace), until=lambda entry: True)
        policies = Scan(policies_in(self.namespace), until=lambda entry: True)
        yield Needs(keys=[namespace_key(self.namespace)], scans=[relations, namespaces, policies])
        entry = existing_namespace(index, self.namespace)
        refuse_protected_namespace(entry, self.namespace)
        intents = self._intents(index)
        inside = namespaces_in(self.namespace), policies_in(self.namespace)
        if intents is None or any(map(index.any_in, inside)):
            raise NamespaceNotEmpty(
                f"Namespace {dotted(self.namespace)} is not empty: drop all tables, views, generic tables, semantic "
                "models, namespaces and policies in it first"
            )
        for intent in intents:
            intent.require_committed()
        grants: Edits = {}
        if self.session.settings.has_grants:
            yield Needs(scans=[Scan(grants_on(entry.entity))])
            grants = edits_without_grants(index, entry.entity)
        yield Needs(scans=[Scan(attached_to(entry.entity))])
        return Change(
            edits={
                namespace_key(self.namespace): None,
                **grants,
                **edits_without_attachments(index, entry.entity),
            },
            answer=Document(204),
            detail={"namespace": [*self.namespace], "entity": entry.entity},
        )

    def _intents(self, index: Index) -> list[RelationEntry] | None:
        """Returns the intents of transactions on names of tables in the namespace, or None if it has a table, view or
        other relation that is no intent: then it is not empty, whatever their transactions decide."""
        intents: list[RelationEntry] = []
        for _, stored in index.scan(relations_in(self.namespace)):
            entry = RelationEntry(stored)
            if entry.transaction is None:
                return None
            intents.append(entry)
        return intents
