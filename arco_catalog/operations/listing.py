"""Listing, in pages that never shift: a page token names the registry commit that the first page was read from, and the
last key (design.md 5)."""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass

from arco_catalog.iceberg.errors import BadRequest, CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, dumps, loads
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.decisions import committed
from arco_catalog.operations.names import existing_namespace
from arco_catalog.state.index import Namespace, namespaces_in, relations_in
from arco_catalog.state.registry import Head

DEFAULT_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Paging:
    """What a client asked for. `token` None: everything at once; empty: the first page."""

    token: str | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Listed:
    """One page, and the token of the next."""

    items: list[JsonValue]
    next_page_token: str | None


async def list_namespaces(session: Session, parent: Namespace, paging: Paging) -> Listed:
    """Direct children of a namespace (or of the catalog), as full paths. Raises `NoSuchNamespace` for the parent."""

    def item(key: str, _: JsonObject) -> JsonValue:
        return [*parent, key.rpartition("\n")[2]]

    def check(head: Head) -> None:
        if parent:
            existing_namespace(head.index, parent)

    return await _page(session, namespaces_in(parent), paging, check, item)


async def list_relations(session: Session, namespace: Namespace, kind: str, paging: Paging) -> Listed:
    """The tables, or the views, of a namespace. Raises `NoSuchNamespace`."""

    def item(key: str, entry: JsonObject) -> JsonValue:
        name = key.rpartition("\n")[2]
        return {"namespace": [*namespace], "name": name} if entry.get("type") == kind else None

    def check(head: Head) -> None:
        existing_namespace(head.index, namespace)

    return await _page(session, relations_in(namespace), paging, check, item)


async def _page(
    session: Session,
    prefix: str,
    paging: Paging,
    check: Callable[[Head], None],
    item: Callable[[str, JsonObject], JsonValue],
) -> Listed:
    after: str | None = None
    if paging.token:
        commit, after = _decode(paging.token, prefix)
        head = await _head_as_of(session, commit)
    else:
        head = await session.state.head()
        check(head)
    limit = None if paging.token is None else min(paging.size or DEFAULT_PAGE, DEFAULT_PAGE)
    items: list[JsonValue] = []
    last = ""
    for key, entry in head.index.scan(prefix, after):
        shown = item(key, entry)
        if shown is None or not await _stands(session, entry):
            continue
        if limit is not None and len(items) == limit:
            return Listed(items, _encode(head, last))
        items.append(shown)
        last = key
    return Listed(items, None)


async def _stands(session: Session, entry: JsonObject) -> bool:
    """Whether what is listed is there: an intent on a name counts once its transaction committed."""
    transaction = entry.get("transaction")
    return not isinstance(transaction, str) or await committed(session.state, transaction)


async def _head_as_of(session: Session, commit: str) -> Head:
    known = session.state.cached_head()
    if known is not None and known.id == commit:
        return known
    try:
        return await session.state.registry_commit(commit)
    except CommitStateUnknown as gone:
        raise BadRequest("The page token has expired: list again from the start") from gone


def _encode(head: Head, last: str) -> str:
    return base64.urlsafe_b64encode(dumps([head.id, last])).decode().rstrip("=")


def _decode(token: str, prefix: str) -> tuple[str, str]:
    try:
        decoded = loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (MalformedJson, binascii.Error, ValueError) as error:
        raise BadRequest("The page token is not one of ours") from error
    match decoded:
        case [str(commit), str(last)] if commit.isalnum() and last.startswith(prefix):
            return commit, last
    raise BadRequest("The page token is not one of this listing's")
