"""A realm whose tables of `system` are asked by readers of some tables only, and what they are to see of them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.runtime import SystemRuntime
from reconciler.system import tables
from reconciler.system.definition import Row, SystemTable
from reconciler.system.writing import Writer
from tests.engines.lake import Lake
from tests.engines.principals import Principals
from tests.engines.realm import realm_served
from tests.engines.trino_server import OWNER
from tests.support.realm_service import on_catalog
from tools.demo.server import WAREHOUSE
from tools.support.openlineage import Query, dataset
from tools.support.request_bodies import view_request

NAME = "walled"
ROW = pa.table({"a": pa.array([1], pa.int64())})
NAMESPACES = ("sales", "sales.eu", "salesforce", "finance")
TABLES = tuple(f"{namespace}.t" for namespace in NAMESPACES)
MOVED = ("finance.came", "sales.came"), ("sales.left", "finance.left")
"""Tables that are moved, from where and to where."""
VIEWS = ("sales.v", "finance.v")


@dataclass(frozen=True)
class Walled:
    """The realm, as its engine and its pipeline work on it; the entities of its tables and views, by the names that
    they have today."""

    principals: Principals
    lake: Lake
    engine: str
    pipeline: str

    def fill(self) -> None:
        """Brings `system` up to date."""
        self.principals.compact(self.pipeline, NAME, OWNER)

    def rows(self, table: SystemTable) -> list[dict[str, object]]:
        """All rows of a table of `system`."""
        found: list[dict[str, object]] = (
            self.principals.catalog(self.engine).load_table(("system", table.name)).scan().to_arrow().to_pylist()
        )
        return found

    def names(self) -> Mapping[str, str]:
        """What each entity is called today."""
        found: dict[str, str] = {}
        for row in sorted(self.rows(tables.CATALOG_EVENTS), key=lambda each: int(str(each["sequence"]))):
            if row["kind"] in ("create-table", "create-view"):
                found[str(row["entity"])] = f"{row['namespace']}.{row['name']}"
            elif row["kind"] == "rename-table":
                found[str(row["entity"])] = f"{row['to_namespace']}.{row['to_name']}"
        return found

    def tell(self, table: SystemTable, *rows: Row) -> None:
        """Writes rows of a table, as a job of the pipeline."""
        opened = self.principals.system(self.pipeline).open(table)
        writer = Writer([opened.target()], SystemRuntime().uuid)
        for row in rows:
            writer.add(table.name, row)
        opened.commit(writer.finish()[table.name], {})


@contextmanager
def walled_lake(folder: Path) -> Iterator[Walled]:
    """Serves such a realm, with rows in each table of `system` that names a table."""
    with realm_served(folder, lifetime_s="1200") as realm:
        principals = Principals(realm)
        engine = principals.make("engine", on_catalog("CATALOG_MANAGE_CONTENT"))
        pipeline = principals.make("pipeline", on_catalog("CATALOG_MANAGE_CONTENT"), **{"arco.pipeline": "true"})
        made = Walled(principals, replace(realm.owner, name=NAME), engine, pipeline)
        client = principals.catalog(engine)
        for namespace in NAMESPACES:
            client.create_namespace(namespace)
        for name in (*TABLES, *(before for before, _ in MOVED)):
            client.create_table(name, ROW.schema).append(ROW)
        for view in VIEWS:
            _make_view(made, view)
        _tell_lineage(made, client, "finance.t", "sales.t")
        _tell_lineage(made, client, "sales.eu.t", "sales.t")
        _tell_lineage(made, client, "sales.t", "salesforce.t")
        for before, after in MOVED:
            client.rename_table(before, after)
        _make_again(client, "anew")
        made.fill()
        _tell_by_hand(made)
        yield made


def _make_again(client: RestCatalog, namespace: str) -> None:
    """A namespace that was dropped with its table, and one of its name with another."""
    for name in ("gone", "t"):
        client.create_namespace(namespace)
        client.create_table(f"{namespace}.{name}", ROW.schema).append(ROW)
        if name == "gone":
            client.drop_table(f"{namespace}.{name}")
            client.drop_namespace(namespace)


def _make_view(walled: Walled, view: str) -> None:
    namespace, _, name = view.rpartition(".")
    where = f"{walled.principals.uri}/v1/{WAREHOUSE}/namespaces/{namespace}/views"
    headers = walled.principals.headers(walled.engine)
    requests.post(where, json=view_request(name), headers=headers, timeout=30).raise_for_status()


def _tell_lineage(walled: Walled, client: RestCatalog, source: str, target: str) -> None:
    read, written = client.load_table(source), client.load_table(target)
    query = Query(walled.principals.uri, f"nightly.{target}")
    _send(walled, query.event("START", [dataset(read)], [dataset(written, version=False)]))
    written.append(ROW)
    _send(walled, query.event("COMPLETE", [dataset(read)], [dataset(_again(written))]))


def _again(table: Table) -> Table:
    return table.refresh()


def _send(walled: Walled, event: JsonObject) -> None:
    headers = walled.principals.headers(walled.engine)
    where = f"{walled.principals.uri}/api/v1/{WAREHOUSE}/lineage"
    answer = requests.post(where, json.dumps(event), headers=headers, timeout=30)
    assert answer.status_code == 201, answer.text


def _tell_by_hand(walled: Walled) -> None:
    """Rows about each table of what has not happened here: tasks, procedures and reports."""
    named = [(entity, *_split(name)) for entity, name in walled.names().items() if not name.endswith(".v")]
    who: Sequence[Row] = [{"entity": entity, "namespace": space, "name": name} for entity, space, name in named]
    ended: Row = {"status": "SUCCESS", "created_at": 1, "ended_at": 2, "summary": "past finance.t", "checkpoint": "{}"}
    walled.tell(
        tables.TASKS,
        *({**each, **ended, "task_id": each["entity"], "task_version": 1, "task_type": "TABLE_PURGE"} for each in who),
    )
    called: Row = {"step": 1, "procedure": "expire_snapshots", "began_at": 1, "ended_at": 2, "outcome": "held-back"}
    walled.tell(
        tables.MAINTENANCE,
        *({**each, **called, "task_id": each["entity"], "explanation": "finance.t is in the way"} for each in who),
    )
    sent: Row = {"received_at": 1, "report_type": "scan", "batch": 0}
    walled.tell(tables.REPORTS, *({**each, **sent, "report_id": each["entity"]} for each in who))


def _split(name: str) -> tuple[str, str]:
    namespace, _, last = name.rpartition(".")
    return namespace, last
