"""Protection: what has `arco.protected=true` in its governance is not dropped, replaced or renamed until that is lifted
(docs/design/polaris.md#protection).

Each change that takes a name from its entity is planned with the entry that its commit replaces, and calls one of these
functions on that entry. A commit on another HEAD is planned again, so no protection is overlooked.
"""

from collections.abc import Sequence

from arco_catalog.iceberg.errors import CommitFailed
from arco_catalog.planning.governance import PROTECTED, is_protected
from arco_catalog.planning.names import called, dotted, format_identifier
from arco_catalog.state.entries import NamespaceEntry, RelationEntry
from arco_catalog.state.index import Namespace


def refuse_protected_relation(entry: RelationEntry, namespace: Namespace, name: str) -> None:
    """Raises `CommitFailed` if the entity with this entry and name, such as a table, view or generic table, is
    protected, and `InternalError` if its stored governance is invalid."""
    if is_protected(entry.governance):
        raise _protected(f"{called(entry.kind).capitalize()} {dotted(namespace, name)}", (*namespace, name))


def refuse_protected_namespace(entry: NamespaceEntry, namespace: Namespace) -> None:
    """Raises `CommitFailed` if the namespace with this entry is protected."""
    if entry.is_protected:
        raise _protected(f"Namespace {dotted(namespace)}", namespace, " --namespace")


def _protected(subject: str, levels: Sequence[str], option: str = "") -> CommitFailed:
    """Returns the error for a change of a protected object, with how to lift the protection."""
    from shlex import quote  # no cold start without a protection pays for it

    return CommitFailed(
        f"{subject} is protected, and nothing was changed: it can't be dropped, replaced or renamed while its "
        f"governance has {PROTECTED}=true. To lift that, which takes the privilege CATALOG_MANAGE_ACCESS, POST "
        f'{{"{PROTECTED}": null}} to its governance endpoint, or run: '
        f"arco governance set {quote(format_identifier(levels))}{option} --remove {PROTECTED}"
    )
