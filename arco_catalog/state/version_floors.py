"""Versions of dropped entities: one that is made again under the name begins behind them, so that a change which
names a version of the predecessor is refused (docs/design/access.md#records).

There is a fixed number of floors, since an entry for each dropped name would grow without end. So an entity
may begin behind the versions of another name that shares its floor.
"""

from hashlib import sha256

from arco_catalog.state.fields import integer
from arco_catalog.state.index import Edits, Index, level
from arco_catalog.state.needs import Needs, Steps

FLOORS = 1_024


def floor_key(key: str) -> str:
    """Key of the floor of all entities whose own keys share it."""
    number = int.from_bytes(sha256(key.encode()).digest()[:4]) % FLOORS
    return f"{level('version-floor', ())}{number:03x}"


def first_version(index: Index, key: str, lowest: int) -> Steps[int]:
    """The version with which an entity begins: `lowest`, or the one behind all that its predecessors had."""
    floor = floor_key(key)
    yield Needs(keys=[floor])
    entry = index.get(floor)
    return lowest if entry is None else max(lowest, integer(entry, "version") + 1)


def raised_floor(index: Index, key: str, version: int) -> Steps[Edits]:
    """The edit for the drop of an entity that was at this version."""
    floor = floor_key(key)
    yield Needs(keys=[floor])
    entry = index.get(floor) or {}
    if entry and integer(entry, "version") >= version:
        return {}
    return {floor: {**entry, "version": version}}
