"""Every object that a busy little catalog leaves is damaged in every way, and the check says what the table in
docs/fsck.md tells."""

import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest

from arco_catalog.state.tombstone import PURGED
from arco_catalog.upkeep.recovery.restore import Choices, restore
from tests.support.loggers import restored
from tests.upkeep.fsck.conftest import Stored
from tests.upkeep.fsck.damage import Roles, diagnosed, roles, ways
from tests.upkeep.fsck.damage_table import BESIDE, DAMAGE, WAYS

OF_A_ROLE = 3
"""Objects of one role that are damaged, unless all are."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with restored():
        logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)
        yield


async def test_every_role_of_the_table_is_there_and_no_other(busy: Stored) -> None:
    assert set((await roles(busy)).values()) == set(DAMAGE) - {"pointer, older only by a mark, a fence or an intent"}


@pytest.mark.parametrize("way", WAYS)
async def test_some_objects_of_every_role(busy: Stored, way: str) -> None:
    known = await roles(busy)
    await damage(busy, known, some(busy, known), way)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_every_object(busy: Stored, way: str) -> None:
    known = await roles(busy)
    await damage(busy, known, [*known], way)


@pytest.mark.parametrize("way", ["gone", "cut"])
async def test_what_arco_restore_is_said_to_mend_it_mends(busy: Stored, way: str) -> None:
    known = await roles(busy)
    tried = set()
    for key in [key for key, role in known.items() if role.startswith("pointer") and not role.endswith(PURGED)]:
        for role, body in await ways(busy, known, key, way):
            await busy.store.delete(key)
            if body is not None:
                await busy.put(key, body)
            told = await busy.found()
            assert "`arco restore`" in told[0].diagnosis.remedy, role
            await restore(busy.fixture.another().session(), Choices(), dry=False)
            assert await busy.codes() == set(), role
            tried.add(role)
    assert tried == {"pointer", "pointer of a table that is purging"}


def some(stored: Stored, known: Roles) -> Sequence[str]:
    """A few keys of each role, evenly spread, and that which was written most often."""
    by_role: dict[str, list[str]] = defaultdict(list)
    for key in sorted(known, key=lambda key: -len({*stored.bodies[key]})):
        by_role[known[key]].append(key)
    return [key for keys in by_role.values() for key in keys[:: -(-len(keys) // OF_A_ROLE)]]


async def damage(stored: Stored, known: Roles, keys: Sequence[str], way: str) -> None:
    """Damages these objects in a way, one after the other, and holds what is told against the table."""
    tried = set()
    for key in keys:
        for role, body in await ways(stored, known, key, way):
            expected = DAMAGE[role].cell(way)
            found = await diagnosed(stored, key, body)
            assert expected is not None, f"{role} {key} can be {way}, and the table says that it can't: {found}"
            assert found & expected or not expected, f"{role} {key}, {way}: {sorted(found)}"
            assert found <= expected | BESIDE, f"{role} {key}, {way}: {sorted(found)}"
            tried.add(role)
    never = {role for role, row in DAMAGE.items() if row.cell(way) is None}
    untried = set(DAMAGE) - never - tried
    assert not untried & set(known.values()), f"nothing of these could be {way}: {untried}"
