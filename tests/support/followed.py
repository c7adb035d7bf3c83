"""A table that follows another catalog's."""

from dataclasses import replace

from arco_catalog.iceberg.json import dumps, loads
from arco_catalog.operations.notifications import notify
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.notifications import Event, Notification
from storage_backends import ABSENT
from tools.support.catalog_fixture import NS, CatalogFixture

FOLDER = "wh/warehouse/followed"


async def follow(fixture: CatalogFixture, like: TableState, name: str = "followed", *, dropped: bool = False) -> None:
    """Makes one in `db`, with metadata like a table's; as if the catalog were of type EXTERNAL."""
    document = loads(like.metadata)
    assert isinstance(document, dict)
    body = dumps({**document, "location": f"memory:///{FOLDER}/{name}"})
    file = f"{FOLDER}/{name}/metadata/1.metadata.json"
    await fixture.store.put(file, body, ABSENT)
    external = replace(fixture, settings=replace(fixture.settings, external=True))
    for at, event in enumerate((Event.CREATE, Event.UPDATE, *([Event.DROP] if dropped else []))):
        notification = Notification(event, at, str(document["table-uuid"]), f"memory:///{file}")
        await notify(external.session(path=f"/notify/{name}/{at}"), NS, name, notification)
