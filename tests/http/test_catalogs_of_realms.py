"""Finding a catalog of a realm by a HEAD that this process has cached."""

from arco_catalog.http.realms import find
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.spilling import Limits
from storage_backends import Found
from storage_backends.memory import MemoryStore
from tests.support.realm_service import RealmApp

SMALL = Limits(embedded=500, segment=1_000, least=500)


async def test_a_cached_head_whose_segments_were_collected_is_read_afresh() -> None:
    app = await RealmApp(settings=Settings("-", spill=SMALL)).start()
    for number in range(12):
        await app.catalog(f"c{number:02}")
    assert isinstance(app.store, MemoryStore)
    idle = app.realms()["r"]
    before = await idle.lookups().head()  # cached, and no segment is
    for number in range(12, 40):
        await app.catalog(f"c{number:02}")
    current = app.realms()["r"].lookups()
    named = {each.ref.id for each in (await current.head()).index.key_ranges("") if each.ref is not None}
    gone = {each.ref.id for each in before.index.key_ranges("") if each.ref is not None} - named
    assert gone
    for segment in gone:
        key = idle.lookups().paths.index_segment(segment)
        found = await app.store.get(key)
        assert isinstance(found, Found)
        await app.store.delete(key)
    for number in range(12):
        entry = await find(idle.lookups(), f"c{number:02}", fresh=False)
        assert entry is not None
