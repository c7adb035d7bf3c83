"""The forms in which a load sends table metadata besides that of its file: with fewer snapshots, and compressed. Each
form is made once for a metadata file, as long as this process has the file in memory."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from arco_catalog.iceberg.json import JsonObject, dumps_long
from arco_catalog.iceberg.json_pieces import let_go
from arco_catalog.planning.answers import TableState
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.gzip_stream import DeflatedPart, deflate
from storage_backends import StoreUnavailable

T = TypeVar("T")


async def visible_snapshots(session: Session, state: TableState) -> bytes:
    """Returns the table metadata of this state, as JSON, without the snapshots that neither a branch nor a tag names.
    Makes it at the first call, or waits for the request that makes it; later calls return the cached one, as long as
    the metadata file is cached. Raises `OutOfMemory`, `UnreadableMetadata`, and `StoreUnavailable` after the request's
    deadline."""
    location, body = state.metadata_location, state.metadata

    form = session.files.form(
        location,
        body,
        lambda file: file.visible,
        lambda: session.files.parse(location, body, partial(_without_hidden_snapshots, len(body))),
        lambda file, made: replace(file, visible=made),
    )
    return await _before_deadline(session, form)


async def deflated_metadata(session: Session, state: TableState, visible: bytes | None) -> DeflatedPart:
    """Returns table metadata as a part of a gzip stream: that of this state's file, or if `visible` is given, these
    bytes, which are the result of `visible_snapshots` for this state. A thread compresses it at the first call; later
    calls return the cached part, as long as the metadata file is cached. Raises `StoreUnavailable` after the request's
    deadline."""
    location, body = state.metadata_location, state.metadata
    if visible is None:
        form = session.files.form(
            location,
            body,
            lambda file: file.deflated,
            lambda: asyncio.to_thread(deflate, body),
            lambda file, made: replace(file, deflated=made),
        )
    else:
        form = session.files.form(
            location,
            body,
            lambda file: file.deflated_visible,
            lambda: asyncio.to_thread(deflate, visible),
            lambda file, made: replace(file, deflated_visible=made),
        )
    return await _before_deadline(session, form)


async def _before_deadline(session: Session, form: Awaitable[T]) -> T:
    """Returns a form of table metadata after waiting for it, because another request may be making it. Raises
    `StoreUnavailable` after the deadline."""
    try:
        async with asyncio.timeout(max(0.0, session.seconds_left())):
            return await form
    except TimeoutError as error:
        raise StoreUnavailable(
            "the table metadata was not ready to be sent before the request's deadline: try again"
        ) from error


def _without_hidden_snapshots(size: int, document: JsonObject) -> bytes:
    """Returns the metadata with only the snapshots to which refs lead, as JSON. Frees the document."""
    from arco_catalog.iceberg.table import visible_snapshots_only  # with it all that commits need, and loads don't

    visible = dumps_long(visible_snapshots_only(document), size)
    let_go(document)
    return visible
