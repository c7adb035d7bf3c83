"""Floors of the versions of entities: a new entity starts with a higher version than dropped entities of the name had,
so that a change that expects a version of the dropped one is refused (docs/design/access.md#records).

There are `FLOORS` floors, because one for each dropped name would grow without limit. Names share them by a hash, so an
entity may also start above the versions of another name."""

from hashlib import sha256

from arco_catalog.state.fields import integer
from arco_catalog.state.index import Edits, Index, level
from arco_catalog.state.needs import Needs, Steps

FLOORS = 1_024


def floor_key(key: str) -> str:
    """Returns the index key of the entry that has the highest version of dropped entities, for the key of an entity.
    Several keys of entities share one."""
    number = int.from_bytes(sha256(key.encode()).digest()[:4]) % FLOORS
    return f"{level('version-floor', ())}{number:03x}"


def first_version(index: Index, key: str, lowest: int) -> Steps[int]:
    """Returns the first version of a new entity with this key: `lowest`, or one more than the highest version of
    dropped entities that is recorded for the key, or for a key that shares the record, if that is higher."""
    floor = floor_key(key)
    yield Needs(keys=[floor])
    entry = index.get(floor)
    return lowest if entry is None else max(lowest, integer(entry, "version") + 1)


def raised_floor(index: Index, key: str, version: int) -> Steps[Edits]:
    """Returns the index changes that record the version of an entity which is dropped, so that a new entity with its
    key starts higher; empty if as high a version is recorded."""
    floor = floor_key(key)
    yield Needs(keys=[floor])
    entry = index.get(floor) or {}
    if entry and integer(entry, "version") >= version:
        return {}
    return {floor: {**entry, "version": version}}
