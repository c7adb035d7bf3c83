"""A served catalog as tests of engines see it: how to reach it, and a bystander's view of what an engine did there."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import Request, urlopen

from pyiceberg.catalog import Catalog
from pyiceberg.table.snapshots import Snapshot

from tests.engines.shell import Rows
from tools.demo.engines import pyiceberg_catalog
from tools.demo.receipts import compare, stored_receipts
from tools.demo.server import WAREHOUSE, Server, serving


@dataclass(frozen=True)
class Lake:
    """A server over a store, and PyIceberg as a client that nobody else knows of.

    `name` is what every engine calls the catalog; `s3` says where the store's S3 is, in the words of Iceberg's clients,
    and nothing on local files; `login` what a client logs in with, in the words of Spark and PyIceberg.
    """

    name: str
    server: Server
    bystander: Catalog
    s3: Mapping[str, str]
    login: Mapping[str, str] = field(default_factory=dict)

    def rows(self, table: str) -> Rows:
        """What is in a table, in an order of its own: an engine's word is not taken for it."""
        found = self.bystander.load_table(table).scan().to_arrow().to_pylist()
        return sorted((tuple(row.values()) for row in found), key=repr)

    def tables(self, namespace: str) -> list[str]:
        """The names of a namespace's tables, sorted."""
        return sorted(name for *_, name in self.bystander.list_tables(namespace))

    def govern(self, table: str, patch: Mapping[str, str]) -> None:
        """Says something of a table, as its governance."""
        self.post(f"{self._path(table)}/governance", patch, "application/merge-patch+json")

    def labels(self, table: str) -> object:
        """What a load of a table says besides its metadata."""
        with urlopen(self._url(self._path(table)), timeout=60) as answer:
            return json.load(answer).get("labels")

    def post(self, path: str, body: Mapping[str, object], content_type: str = "application/json") -> None:
        """Sends a request for which engines have no statement, by its path in the catalog. Raises `HTTPError` unless it
        succeeds."""
        request = Request(self._url(path), json.dumps(body).encode(), {"Content-Type": content_type})
        urlopen(request, timeout=60).close()

    def _url(self, path: str) -> str:
        return f"{self.server.uri}/v1/{WAREHOUSE}/{path}"

    def _path(self, table: str) -> str:
        namespace, _, name = table.rpartition(".")
        return f"namespaces/{namespace}/tables/{name}"

    def assert_receipts(self, *tables: str, engine: str | None = None) -> None:
        """Each metadata file that was ever current has one committed receipt, and no other file has any. Of
        those that brought snapshots some say that `engine` made them, and none that another did."""
        for table in tables:
            loaded = self.bystander.load_table(table)
            current = [*(entry.metadata_file for entry in loaded.metadata.metadata_log), loaded.metadata_location]
            told = json.loads(self.server.receipts(table))
            entity = told[0]["entity"]
            stored = asyncio.run(stored_receipts(self.server.store, {entity: len(current)}))
            compare(f"receipts of {table}", stored[entity], current)
            assert len(told) == len(current)
            if engine is not None:
                brought = [receipt for receipt in told if receipt["added_snapshot_ids"]]
                assert {receipt["engine"].partition("/")[0] for receipt in brought if "engine" in receipt} == {engine}


@contextmanager
def lake(name: str, store: str, log: Path, s3: Mapping[str, str], *options: str) -> Iterator[Lake]:
    """Serves a store, with options of `arco serve`. The environment must lead the server to its S3."""
    with serving(store, log, *options) as server:
        yield Lake(name, server, pyiceberg_catalog(server.uri, WAREHOUSE, dict(s3)), s3)


def attempt_of(snapshot: Snapshot) -> int:
    """The number of the client's attempt that was committed, by the name of its manifest list: Iceberg's Java client
    counts them from 1."""
    [attempt] = re.findall(r"/snap-\d+-(\d+)-[^/]+$", snapshot.manifest_list)
    return int(attempt)
