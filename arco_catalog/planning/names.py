"""Names as messages and histories spell them."""

from arco_catalog.iceberg.errors import NoSuchNamespace, NoSuchTable, NoSuchView, Refusal
from arco_catalog.state.entries import NamespaceEntry, find_namespace
from arco_catalog.state.index import Index, Namespace

Identifier = tuple[Namespace, str]
"""The namespace and name of a table or view."""


def dotted(namespace: Namespace, name: str | None = None) -> str:
    """`a.b` or `a.b.t`."""
    return ".".join(namespace if name is None else (*namespace, name))


def existing_namespace(index: Index, namespace: Namespace) -> NamespaceEntry:
    """The namespace's entry. Raises `NoSuchNamespace`."""
    entry = find_namespace(index, namespace)
    if entry is None:
        raise NoSuchNamespace(f"Namespace does not exist: {dotted(namespace)}")
    return entry


def no_such(kind: str, namespace: Namespace, name: str) -> Refusal:
    """The error for a table or view that does not exist."""
    if kind == "view":
        return NoSuchView(f"View does not exist: {dotted(namespace, name)}")
    return NoSuchTable(f"Table does not exist: {dotted(namespace, name)}")
