"""Every object of a small busy catalog is damaged in every way, and the check reports the codes of the table in
docs/fsck.md."""

import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest

from arco_catalog.state.tombstone import PURGED
from arco_catalog.upkeep.recovery.restore import Choices, restore
from tests.support.loggers import restored
from tests.upkeep.fsck.conftest import StoredCatalog
from tests.upkeep.fsck.damage import Roles, diagnosed, roles, ways
from tests.upkeep.fsck.damage_table import BESIDE, DAMAGE, WAYS

OF_A_ROLE = 3
"""Objects of one role that are damaged, unless all are."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with restored():
        logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)
        yield


async def test_every_role_of_the_table_is_there_and_no_other(busy: StoredCatalog) -> None:
    assert set((await roles(busy)).values()) == set(DAMAGE) - {"pointer, older only by a mark, a fence or an intent"}


@pytest.mark.parametrize("way", WAYS)
async def test_some_objects_of_every_role(busy: StoredCatalog, way: str) -> None:
    known = await roles(busy)
    await damage(busy, known, some(busy, known), way)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_every_object(busy: StoredCatalog, way: str) -> None:
    known = await roles(busy)
    await damage(busy, known, [*known], way)


@pytest.mark.parametrize("way", ["gone", "cut"])
async def test_a_finding_with_the_advice_arco_restore_is_mended_by_it(busy: StoredCatalog, way: str) -> None:
    known = await roles(busy)
    tried = set()
    for key in [key for key, role in known.items() if role.startswith("pointer") and not role.endswith(PURGED)]:
        for role, body in await ways(busy, known, key, way):
            await busy.store.delete(key)
            if body is not None:
                await busy.put(key, body)
            report = await busy.found()
            assert "`arco restore`" in report[0].code.remedy, role
            await restore(busy.fixture.another().session(), Choices(), dry=False)
            assert await busy.codes() == set(), role
            tried.add(role)
    assert tried == {"pointer", "pointer of a table that is purging"}


def some(stored: StoredCatalog, known: Roles) -> Sequence[str]:
    """Returns a few keys of each role, evenly spread, and the one with the largest number of writes."""
    by_role: dict[str, list[str]] = defaultdict(list)
    for key in sorted(known, key=lambda key: -len({*stored.bodies[key]})):
        by_role[known[key]].append(key)
    return [key for keys in by_role.values() for key in keys[:: -(-len(keys) // OF_A_ROLE)]]


async def damage(stored: StoredCatalog, known: Roles, keys: Sequence[str], way: str) -> None:
    """Damages these objects in one way, one after the other, and compares the reported codes with the table."""
    tried = set()
    for key in keys:
        for role, body in await ways(stored, known, key, way):
            expected = DAMAGE[role].cell(way)
            found = await diagnosed(stored, key, body)
            assert expected is not None, f"{role} {key} can be {way}, but the table has no cell for it: {found}"
            assert found & expected or not expected, f"{role} {key}, {way}: {sorted(found)}"
            assert found <= expected | BESIDE, f"{role} {key}, {way}: {sorted(found)}"
            tried.add(role)
    never = {role for role, row in DAMAGE.items() if row.cell(way) is None}
    untried = set(DAMAGE) - never - tried
    assert not untried & set(known.values()), f"nothing of these could be {way}: {untried}"
