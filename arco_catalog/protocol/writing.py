"""Turns the writes of a plan, which are values, into functions that make them."""

from functools import partial
from typing import assert_never

from arco_catalog.planning.writes import FileRemoval, FileWrite, PlannedWrite, PointerWrite, RecordWrite
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.cleaning import remove_old_files
from arco_catalog.protocol.planned_commit import Write
from arco_catalog.state.pointer import Pointer
from storage_backends import Version


def writes(session: Session, *planned: PlannedWrite) -> list[Write]:
    """Returns for each planned write a `Write` with the function that makes it, which is not called yet."""
    return [_write(session, write) for write in planned]


def _write(session: Session, write: PlannedWrite) -> Write:
    """Returns a write to the store that carries out one write of a plan: a key that names it, and the function that
    makes it. Makes nothing."""
    match write:
        case FileWrite(location, body, packed):
            return Write(location, partial(session.files.create, location, body, packed=packed))
        case RecordWrite(key, body):
            return Write(key, partial(_create, session, key, body))
        case PointerWrite(pointer):
            return Write(session.state.paths.pointer(pointer.entity), partial(_create_pointer, session, pointer))
        case FileRemoval(entity, files):
            return Write(f"cleaning of {entity}", partial(remove_old_files, session, entity, files))
        case _:
            assert_never(write)


async def _create(session: Session, key: str, body: bytes) -> None:
    """Creates the object of a record that never changes, under this key of the state. Raises as `State.create` does."""
    await session.state.create(key, body)


async def _create_pointer(session: Session, pointer: Pointer) -> None:
    """Writes a new entity's pointer, and keeps it in the cache. If a pointer is there already, an earlier sending of
    this write made it, which its list of moves must show; nothing is cached then if the pointer has moved since
    (docs/design/commit.md#evidence)."""
    key, body = session.state.paths.pointer(pointer.entity), pointer.body
    [move] = pointer.recent

    def moved_on(there: bytes) -> bool:
        return move in Pointer.parse(there, Version(""), key).recent

    version = await session.state.create(key, body, made_from_ours=moved_on)
    if version is not None:
        session.state.cache_pointer(Pointer(pointer.document, version), len(body))
