"""A catalog for the console to show: tables with versions, names meant to do harm, a view, drops, roles and grants."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import DoubleType, ListType, LongType, NestedField, StringType, StructType, TimestampType

from tests.cli.process import Server, serving
from tests.support.served_realms import LOGINS, Root, bootstrapped, manage
from tools.support.openlineage import Query, dataset
from tools.support.request_bodies import view_request

HOSTILE = (
    "<script>alert(1)</script>",
    "שלום (evil) ١٢",
    "n" * 255,
    "${x}{{7*7}}",
    "a/b?c#d%2e",
)
"""Names that a page must show as they are. PyIceberg writes them into addresses by itself."""
SMALL_TABLES = 230
"""More than the console reads of a list at once."""
ORDERS = Schema(
    NestedField(1, "order_id", LongType(), required=True, doc="The number of the order"),
    NestedField(2, "placed", TimestampType(), required=False),
    NestedField(3, "amount", DoubleType(), required=False, doc="In euros"),
    NestedField(
        4,
        "lines",
        ListType(5, StructType(NestedField(6, "sku", StringType(), required=False)), element_required=False),
        required=False,
    ),
    identifier_field_ids=[1],
)


@dataclass(frozen=True)
class Lake:
    """A server with the catalog `arco`, its root, and ada, who may read what is in `sales` alone."""

    server: Server
    root: Root
    ada: tuple[str, str]

    @property
    def settings(self) -> dict[str, str]:
        """What the programs in the browser are given."""
        return {
            "ARCO_URI": self.server.uri,
            "ARCO_ROOT": json.dumps([self.root.client_id, self.root.secret]),
            "ARCO_ADA": json.dumps(self.ada),
            "ARCO_HOSTILE": json.dumps(HOSTILE),
        }


@asynccontextmanager
async def served_lake(folder: Path, *, base_path: str = "/prod") -> AsyncIterator[Lake]:
    """Serves the catalog over files in a folder, below a path of its own."""
    store = f"file:{folder}/store"
    root = await bootstrapped(store)
    ada = await _reader(store)
    options = ("--base-path", base_path) if base_path else ()
    async with serving(store, *options, **LOGINS) as server:
        await asyncio.to_thread(_fill, root.catalog(server.uri))
        await _govern(store)
        yield Lake(server, root, ada)


def _fill(catalog: RestCatalog) -> None:
    for namespace in (("sales",), ("sales", "archive"), ("many",), ("hostile",)):
        catalog.create_namespace(namespace, {"comment": "For the console"})
    _orders(catalog)
    for name in HOSTILE:
        catalog.create_table(
            ("hostile", name), Schema(NestedField(1, name, StringType(), doc=name * 4)), properties={name[:100]: name}
        )
    for number in range(SMALL_TABLES):
        catalog.create_table(("many", f"table_{number:03}"), Schema(NestedField(1, "x", LongType())))
    catalog.create_table("sales.mistake", Schema(NestedField(1, "x", LongType())))
    catalog.drop_table("sales.mistake")
    catalog.create_table("sales.scrap", Schema(NestedField(1, "x", LongType())))
    catalog.purge_table("sales.scrap")
    _post(catalog, "namespaces/sales/views", view_request("recent_orders"))
    policy = {
        "name": "compact",
        "type": "system.data-compaction",
        "content": '{"version": "2025-02-03", "enable": true}',
    }
    _post(catalog, "namespaces/sales/policies", policy, polaris=True)


def _orders(catalog: RestCatalog) -> None:
    table = catalog.create_table(
        "sales.orders", ORDERS, properties={"comment": "Orders of all shops", "owner-team": "shop"}
    )
    fields = [pa.field("order_id", pa.int64(), nullable=False), pa.field("placed", pa.timestamp("us"))]
    rows = pa.table([[1, 2, 3], [datetime(2026, 11, day) for day in (1, 2, 3)]], schema=pa.schema(fields))
    for _ in range(4):
        table.append(rows)
    table.overwrite(rows)
    with table.update_spec() as spec:
        spec.add_field("placed", DayTransform())
    with table.update_schema() as update:
        update.add_column("channel", StringType(), "Web or shop")
        update.rename_column("amount", "total")
    table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "first-day").commit()
    catalog.create_table("sales.empty", Schema(NestedField(1, "x", LongType())))
    totals = catalog.create_table("sales.totals", Schema(NestedField(1, "x", LongType())))
    totals.append(pa.table({"x": [9]}))
    event = Query(catalog.uri, "nightly totals").event("COMPLETE", [dataset(table)], [dataset(totals)])
    catalog._session.post(f"{catalog.uri}/api/v1/arco/lineage", json=event).raise_for_status()


def _post(catalog: RestCatalog, path: str, body: dict[str, Any], *, polaris: bool = False) -> None:
    api = "polaris/v1" if polaris else "v1"
    answer = catalog._session.post(f"{catalog.uri}/{api}/arco/{path}", json=body)
    answer.raise_for_status()


async def _reader(store: str) -> tuple[str, str]:
    """Makes ada, and returns her client id and secret."""
    made = json.loads(await manage(store, "principals", "create", "ada", "--json"))
    await manage(store, "roles", "create", "analyst")
    await manage(store, "roles", "assign", "analyst", "--to", "ada")
    await manage(store, "roles", "create", "reader", "--catalog-role")
    await manage(store, "roles", "assign", "reader", "--catalog-role", "--to", "analyst")
    return made["credentials"]["clientId"], made["credentials"]["clientSecret"]


async def _govern(store: str) -> None:
    await manage(store, "grants", "add", "reader", "TABLE_READ_DATA", "sales", "--namespace")
    await manage(store, "grants", "add", "reader", "NAMESPACE_LIST", "sales", "--namespace")
    governed = ("arco.owner=shop", "arco.quality=checked", "arco.tag.pii=none")
    await manage(store, "governance", "set", "sales.orders", *governed)
