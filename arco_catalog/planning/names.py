"""Forms the names of objects for messages and histories, and makes the errors about names, for example for a name that
is taken."""

import re
from collections.abc import Callable, Mapping, Sequence

from arco_catalog.iceberg.errors import (
    AlreadyExists,
    BadRequest,
    NoSuchNamespace,
    NoSuchPolicy,
    NoSuchSemanticModel,
    NoSuchTable,
    NoSuchView,
    Refusal,
)
from arco_catalog.state.entries import NamespaceEntry, described_kind, find_namespace, find_relation
from arco_catalog.state.index import Index, Namespace, namespace_key, relation_key
from arco_catalog.state.needs import Needs, Steps

Identifier = tuple[Namespace, str]
"""A namespace, and a name in it."""
MAX_PLAIN_NAME = 255
_PLAIN = re.compile(r"[A-Za-z0-9\-_]+")


def dotted(namespace: Namespace, name: str | None = None) -> str:
    """Returns a namespace, or a name in it, with its levels joined by dots: `a.b` or `a.b.t`."""
    return ".".join(namespace if name is None else (*namespace, name))


def format_identifier(levels: Sequence[str]) -> str:
    """Returns levels joined by dots, as commands take them: a level with a dot or quote is in quotes, and a quote in it
    is written twice."""
    return ".".join('"' + level.replace('"', '""') + '"' if "." in level or '"' in level else level for level in levels)


def existing_namespace(index: Index, namespace: Namespace) -> NamespaceEntry:
    """Returns the entry of a namespace, whose key must be loaded. Raises `NoSuchNamespace`."""
    entry = find_namespace(index, namespace)
    if entry is None:
        raise NoSuchNamespace(f"Namespace does not exist: {dotted(namespace)}")
    return entry


def called(kind: str) -> str:
    """Returns the words for a kind of object in messages, such as `generic table` for `generic-table`; `table or view`
    for `table-like`."""
    return "table or view" if kind == "table-like" else kind.replace("-", " ")


def no_such(kind: str, namespace: Namespace, name: str) -> Refusal:
    """Returns the error for an object of a kind that does not exist."""
    refusal = _REFUSALS.get(kind, NoSuchTable)
    return refusal(f"{called(kind).capitalize()} does not exist: {dotted(namespace, name)}")


_REFUSALS: Mapping[str, type[Refusal]] = {
    "view": NoSuchView,
    "policy": NoSuchPolicy,
    "semantic-model": NoSuchSemanticModel,
}


def not_of_kind(index: Index, kind: str, namespace: Namespace, name: str) -> Refusal:
    """Returns the error for a name without an entity of this kind. If a table was requested and the name has a generic
    table or semantic model, the message names that and the path; privileges on tables apply to these, too. The name's
    entry must be loaded."""
    found = find_relation(index, namespace, name) if kind == "table" else None
    if found is None or described_kind(found.json) is None:
        return no_such(kind, namespace, name)
    return NoSuchTable(
        f"Table does not exist: {dotted(namespace, name)} is a {called(found.kind)}, which is found below "
        f"/polaris/v1/{{prefix}}/namespaces/{{namespace}}/{found.kind}s"
    )


def check_plain_name(kind: str, name: str) -> str:
    """Returns the name if it has 1 to `MAX_PLAIN_NAME` ASCII letters, ASCII digits, '-' and '_', as names of this kind
    must. Raises `BadRequest`."""
    if not _PLAIN.fullmatch(name) or len(name) > MAX_PLAIN_NAME:
        raise BadRequest(
            f"Invalid request.name: a {called(kind)} has 1 to {MAX_PLAIN_NAME} characters, each a letter, a digit, '-' "
            f"or '_' ({_PLAIN.pattern}): {name[:100]!r}"
        )
    return name


def name_taken(kind: str, by: str, namespace: Namespace, name: str) -> Refusal:
    """Returns the error for the creation of an entity of a kind under a name that an entity of the kind `by` has
    already."""
    what = called(by).capitalize()
    if by == kind:
        return AlreadyExists(f"{what} already exists: {dotted(namespace, name)}")
    return AlreadyExists(f"{what} with same name already exists: {dotted(namespace, name)}")


def require_free_name(index: Index, namespace: Namespace, name: str, taken: Callable[[str], Refusal]) -> Steps[None]:
    """Returns if the namespace exists and the name is free. Raises `NoSuchNamespace`, `PendingTransaction`, and the
    error that `taken` returns for the kind of the entity with the name."""
    yield Needs(keys=[namespace_key(namespace), relation_key(namespace, name)])
    existing_namespace(index, namespace)
    existing = find_relation(index, namespace, name)
    if existing is not None:
        raise taken(existing.require_committed().kind)
