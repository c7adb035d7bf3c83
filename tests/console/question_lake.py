"""A catalog about which people ask questions, drawn from a seed: names, principals, versions, dropped tables, a job."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType

from tests.cli.process import serving
from tests.console.lake import Lake
from tests.support.served_realms import LOGINS, Root, bootstrapped
from tools.support.openlineage import Query, dataset

ROWS = Schema(NestedField(1, "id", LongType()), NestedField(2, "note", StringType()))
SYLLABLES = ("ba", "du", "fen", "gor", "hi", "kel", "lo", "mir", "nu", "pra", "sto", "tha", "ul", "vex", "wen", "zo")
MANAGEMENT = "api/management/v1"
VERSIONS = range(14, 18)
"""How many versions the table may have: the timeline shows them on one page."""


class Words:
    """Words that no earlier call returned."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.used: set[str] = set()

    def __call__(self) -> str:
        word = "".join(self.random.sample(SYLLABLES, 3))
        if word in self.used:
            return self()
        self.used.add(word)
        return word


@dataclass(frozen=True)
class QuestionLake:
    """A server with the catalog, and what the questions are about. Answers come from its APIs."""

    lake: Lake
    questions: Mapping[str, object]

    @property
    def settings(self) -> dict[str, str]:
        """What the programs in the browser are given."""
        return {**self.lake.settings, "ARCO_QUESTIONS": json.dumps(self.questions)}


@asynccontextmanager
async def served_questions(folder: Path, seed: int) -> AsyncIterator[QuestionLake]:
    """Serves the catalog that a seed gives, over files in a folder."""
    store = f"file:{folder}/store"
    root = await bootstrapped(store)
    async with serving(store, "--base-path", "/prod", **LOGINS) as server:
        made = await asyncio.to_thread(_Maker(server.uri, root, seed).make)
        reader: tuple[str, str] = made.pop("reader")
        yield QuestionLake(Lake(server, root, reader), made)


class _Maker:
    """Fills the catalog by the APIs of the server."""

    def __init__(self, uri: str, root: Root, seed: int) -> None:
        self.uri = uri
        self.random = Random(seed)
        self.word = Words(self.random)
        self.root = root.catalog(uri)
        self.namespace = self.word()

    def make(self) -> dict[str, Any]:
        """Returns the names of what was made, by which the questions ask."""
        self.root.create_namespace((self.namespace,))
        grants = [(each, self.namespace) for each in ("TABLE_READ_DATA", "NAMESPACE_LIST")]
        reader = self._principal(*grants)
        dropper = self._principal(("CATALOG_MANAGE_CONTENT", None))
        for _ in range(self.random.randrange(3)):
            self._principal((self.random.choice(("TABLE_READ_DATA", "TABLE_WRITE_DATA", "TABLE_DROP")), self.namespace))
        return {
            "reader": reader,
            "namespace": self.namespace,
            "table": self._written(),
            "dropped": self._dropped(dropper, purge=False),
            "owed": self._dropped(dropper, purge=True),
            "version": self.random.randrange(2, VERSIONS.start - 1),
        }

    def _principal(self, *grants: tuple[str, str | None]) -> tuple[str, str]:
        """Makes a principal with a role that has these grants, on a namespace or on the catalog, and returns its client
        id and secret."""
        name, role = self.word(), self.word()
        made = self._send("POST", f"{MANAGEMENT}/principals", {"principal": {"name": name}})
        self._send("POST", f"{MANAGEMENT}/principal-roles", {"principalRole": {"name": role}})
        self._send("PUT", f"{MANAGEMENT}/principals/{name}/principal-roles", {"principalRole": {"name": role}})
        roles, in_catalog = f"{MANAGEMENT}/catalogs/arco/catalog-roles", {"catalogRole": {"name": role}}
        self._send("POST", roles, in_catalog)
        self._send("PUT", f"{MANAGEMENT}/principal-roles/{role}/catalog-roles/arco", in_catalog)
        for privilege, namespace in grants:
            on = {"type": "catalog"} if namespace is None else {"type": "namespace", "namespace": [namespace]}
            self._send("PUT", f"{roles}/{role}/grants", {"grant": {**on, "privilege": privilege}})
        return made["credentials"]["clientId"], made["credentials"]["clientSecret"]

    def _written(self) -> str:
        """Makes a table with several versions, which a job wrote from another table, and returns its name."""
        source = self.root.create_table((self.namespace, self.word()), ROWS)
        source.append(self._rows())
        name = self.word()
        table = self.root.create_table((self.namespace, name), ROWS)
        changes: list[Callable[[Table], object]] = [self._append, self._add_column, self._set_property]
        self._append(table)
        for _ in range(self.random.choice(VERSIONS) - 2):
            self.random.choice(changes)(table)
        event = Query(self.uri, self.word()).event("COMPLETE", [dataset(source)], [dataset(table)])
        self._send("POST", "api/v1/arco/lineage", event)
        if self.random.random() < 0.5:
            path = f"v1/arco/namespaces/{self.namespace}/tables/{name}/governance"
            self._send("POST", path, {"arco.quality": self.word()})
        return name

    def _rows(self) -> pa.Table:
        size = self.random.randrange(1, 9)
        return pa.table({"id": range(size), "note": [self.word() for _ in range(size)]})

    def _append(self, table: Table) -> None:
        table.append(self._rows())

    def _add_column(self, table: Table) -> None:
        with table.update_schema() as update:
            update.add_column(self.word(), StringType(), self.word())

    def _set_property(self, table: Table) -> None:
        with table.transaction() as transaction:
            transaction.set_properties({self.word(): self.word()})

    def _dropped(self, dropper: tuple[str, str], *, purge: bool) -> str:
        name = self.word()
        self.root.create_table((self.namespace, name), ROWS)
        catalog = Root(None, *dropper).catalog(self.uri)
        (catalog.purge_table if purge else catalog.drop_table)((self.namespace, name))
        return name

    def _send(self, method: str, path: str, body: Any) -> Any:
        answer = self.root._session.request(method, f"{self.uri}/{path}", json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None
