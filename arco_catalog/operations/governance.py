"""Reads the governance of namespaces, tables and views: owner, quality, tags, protection. Changes it by one registry
commit (docs/design/polaris.md#governance)."""

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.named_change import NamedChange
from arco_catalog.operations.namespaces import PropertiesChange, namespace_properties
from arco_catalog.operations.properties import check_properties, size_of
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.governance import PROTECTED, Governance, governance_of, is_protected, merge
from arco_catalog.planning.names import called, dotted, existing_namespace, not_of_kind
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.mutation import NoOp
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.protocol.relation_read_set import RelationLookup, resolve_name
from arco_catalog.state.entries import find_kind
from arco_catalog.state.index import Namespace
from arco_catalog.state.needs import Needs, Steps


async def namespace_governance(session: Session, namespace: Namespace) -> JsonObject:
    """Returns the governance document of a namespace, empty if it has none. Raises `NoSuchNamespace`."""
    return {**governance_of(await namespace_properties(session, namespace))}


async def relation_governance(session: Session, namespace: Namespace, name: str, kind: str) -> JsonObject:
    """Returns the governance document of a table or view, as `kind` selects, empty if it has none. Reads no pointer
    and no metadata file. Raises `NoSuchTable` if there is no such table, and `NoSuchView` if there is no such
    view."""
    head = await session.head()
    entry = await resolve_name(session, head, RelationLookup(namespace, name, kind, writing=False))
    if entry is None:
        raise not_of_kind(head.index, kind, namespace, name)
    return {**entry.governance}


async def govern_namespace(session: Session, namespace: Namespace, patch: JsonObject) -> Answer:
    """Merges a JSON merge patch into the governance document of a namespace, by a registry commit unless it changes
    nothing, and answers with the result. Raises `NoSuchNamespace`, and `BadRequest` for invalid fields and a document
    that is too large."""
    return await run(session, _GovernNamespace(session, namespace, patch))


async def govern_relation(session: Session, namespace: Namespace, name: str, kind: str, patch: JsonObject) -> Answer:
    """Merges a JSON merge patch into the governance document of a table or view, as `kind` selects, by a registry
    commit unless it changes nothing, and answers with the result. Raises `NoSuchTable`, `NoSuchView`, and `BadRequest`
    for invalid fields and a document that is too large."""
    return await run(session, _GovernRelation(session, namespace, name, kind, patch))


class _GovernNamespace(PropertiesChange):
    kind = "govern-namespace"

    def __init__(self, session: Session, namespace: Namespace, patch: JsonObject) -> None:
        super().__init__(session, namespace)
        self.patch = patch

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change | NoOp]:
        """Plans the namespace's governance after the patch, which is the body of the response, and the change of
        properties and protection; `NoOp` if the patch changes nothing. Raises `NoSuchNamespace`, and an error for
        an invalid patch and for properties that are too large."""
        yield Needs(keys=self.keys)
        entry = existing_namespace(read_set.head.index, self.namespace)
        properties, subject = self.properties(entry), f"namespace {dotted(self.namespace)}"
        before = governance_of(properties)
        after = merge(subject, before, self.patch, columns=False)
        document: JsonObject = {**after}
        if after == before:
            return NoOp(Document(200, document))
        entry = entry.with_protection(is_protected(after))
        together = {**{name: value for name, value in properties.items() if name not in before}, **document}
        check_properties(subject, {}, together, size_of(properties))
        return self.changed(attempt, entry, entry.location, together, document, _changes(before, after))


class _GovernRelation(NamedChange):
    def __init__(self, session: Session, namespace: Namespace, name: str, kind: str, patch: JsonObject) -> None:
        super().__init__(session, namespace, name)
        self.kind = f"govern-{kind}"
        self.relation_kind = kind
        self.patch = patch

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change | NoOp]:
        """Plans the governance of the table or view after the patch, which is the body of the response, and the
        change of the entry; `NoOp` if the patch changes nothing. Raises `NoSuchTable` or `NoSuchView`,
        `PendingTransaction`, and an error for an invalid patch and for a document that is too large."""
        index = read_set.head.index
        yield Needs(keys=[self.key])
        entry = find_kind(index, self.namespace, self.name, self.relation_kind)
        if entry is None:
            raise not_of_kind(index, self.relation_kind, self.namespace, self.name)
        before = entry.require_committed().governance
        subject = f"{called(self.relation_kind)} {self.full_name}"
        after = merge(subject, before, self.patch, columns=True)
        answer = Document(200, {**after})
        if after == before:
            return NoOp(answer)
        return Change(
            edits={self.key: entry.with_governance(after).json},
            answer=answer,
            detail=self.detail(entry.entity, **_changes(before, after)),
            about=(entry.entity, entry.uuid),
        )


def _changes(before: Governance, after: Governance) -> JsonObject:
    """Returns what the registry's history has about a change of a governance document: the names of the fields that
    differ, not their values, which its readers may not see; and, if they include `arco.protected`, whether it
    protects now."""
    names: list[JsonValue] = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    protection: JsonObject = {"protected": is_protected(after)} if PROTECTED in names else {}
    return {"governance": names, **protection}
