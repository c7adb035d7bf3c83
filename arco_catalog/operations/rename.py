"""Renames tables and views by one registry commit; the entity, its pointer and its files stay where they are
(docs/design/registry.md#rule-6)."""

from arco_catalog.iceberg.errors import AlreadyExists
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.names import Identifier, called, dotted, existing_namespace, not_of_kind
from arco_catalog.planning.protection import refuse_protected_relation
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.registry_mutation import RegistryMutation, RegistryReadSet
from arco_catalog.state.entries import find_kind, find_relation
from arco_catalog.state.holds import renewed_holds
from arco_catalog.state.index import Edits, namespace_key, relation_key
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.policies import attached_to, renamed_attachments
from arco_catalog.state.roles import granted_key, grants_on, ids_under, renamed_grants
from arco_catalog.state.stored_fields import keep_stored_fields


async def rename_table(session: Session, source: Identifier, destination: Identifier) -> Answer:
    """Gives a table another name, in any namespace of the catalog; grants on it and attached policies stay. Raises
    `NoSuchTable`, `CommitFailed` for a protected table, `NoSuchNamespace` for the destination, and `AlreadyExists` if
    any relation has the destination's name."""
    return await run(session, _Rename(session, source, destination, "table"))


async def rename_view(session: Session, source: Identifier, destination: Identifier) -> Answer:
    """Gives a view another name, in any namespace of the catalog; grants on it and attached policies stay. Raises
    `NoSuchView`, `CommitFailed` for a protected view, `NoSuchNamespace` for the destination, and `AlreadyExists` if any
    relation has the destination's name."""
    return await run(session, _Rename(session, source, destination, "view"))


class _Rename(RegistryMutation):
    def __init__(self, session: Session, source: Identifier, destination: Identifier, what: str) -> None:
        super().__init__(session)
        self.source = source
        self.destination = destination
        self.what = what
        self.kind = f"rename-{what}"

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the move of the name, with the names in grants, attachments and holds. Raises `NoSuchTable` or
        `NoSuchView`, `CommitFailed` for a protected relation, `NoSuchNamespace` for the destination, `AlreadyExists` if
        any relation has that name, and `PendingTransaction` if either name is an intent."""
        index, destination = read_set.head.index, (namespace_key(self.destination[0]), relation_key(*self.destination))
        yield Needs(keys=[relation_key(*self.source), *destination])
        entry = find_kind(index, *self.source, self.what)
        if entry is None:
            raise not_of_kind(index, self.what, *self.source)
        refuse_protected_relation(entry.require_committed(), *self.source)
        existing_namespace(index, self.destination[0])
        there = find_relation(index, *self.destination)
        if there is not None:
            there.require_committed()
        if there is not None and there.kind == self.what == "table":
            raise AlreadyExists(f"Table already exists: {dotted(*self.destination)}")
        if there is not None:
            raise AlreadyExists(
                f"Cannot rename {dotted(*self.source)} to {dotted(*self.destination)}. "
                f"{called(there.kind).capitalize()} already exists"
            )
        grants: Edits = {}
        if self.session.settings.has_grants:
            yield Needs(scans=[Scan(grants_on(entry.entity))])
            roles = [*ids_under(index, grants_on(entry.entity))]
            yield Needs(keys=[granted_key(role, entry.entity) for role in roles])
            grants = renamed_grants(index, entry.entity, roles, *self.destination)
        yield Needs(scans=[Scan(attached_to(entry.entity))])
        attached = yield from keep_stored_fields(index, renamed_attachments(index, entry.entity, *self.destination))
        name = (*self.destination[0], self.destination[1])
        renewed = yield from renewed_holds(index, entry.entity, entry.locations, name=name)
        return Change(
            edits={
                **grants,
                **attached,
                relation_key(*self.source): None,
                relation_key(*self.destination): entry.json,
                **renewed,
            },
            answer=Document(204),
            detail={
                "namespace": [*self.source[0]],
                "name": self.source[1],
                "entity": entry.entity,
                "to": {"namespace": [*self.destination[0]], "name": self.destination[1]},
            },
            about=(entry.entity, entry.uuid),
        )
