"""Consistent answers of `resolve` over HTTP, from two servers, while transactions change both of two tables and another
table gets another name: each answer is of one instant (docs/design/resolve.md#rule-5)."""

import asyncio
import os
from collections import Counter
from itertools import count
from pathlib import Path

import aiohttp
import pytest

from arco_catalog.iceberg.json import JsonObject
from tools.support.arco_server import WAREHOUSE, ArcoServer
from tools.support.request_bodies import renaming, schema, set_property, transaction

READERS = 4
READS = int(os.environ.get("ARCO_CUT_READS", "20000"))
PAUSE_S = 0.01
"""Between two changes of a writer."""
BOUND_S = 900.0
NAMES = ("a", "b", "c", "d")
BODY: JsonObject = {"relations": [{"identifier": ["db", name]} for name in NAMES], "consistent": True}


class Cuts:
    """Clients of two servers of one catalog: two write, some read, until there are `wanted` answers, which show so many
    instants that some lie between two changes."""

    def __init__(self, session: aiohttp.ClientSession, uris: list[str], wanted: int) -> None:
        self._session = session
        self._uris = [f"{uri}/v1/{WAREHOUSE}" for uri in uris]
        self._wanted = wanted
        self._answers = 0
        self._seen: set[tuple[str, bool]] = set()
        self.counted: Counter[str] = Counter()

    async def post(self, number: int, path: str, body: JsonObject) -> aiohttp.ClientResponse:
        """Sends a request to one server or the other, by its number."""
        async with self._session.post(self._uris[number % 2] + path, json=body) as answer:
            await answer.read()
            return answer

    async def set_up(self) -> None:
        """Makes three tables; nothing has the name `d`."""
        assert (await self.post(0, "/namespaces", {"namespace": ["db"]})).status == 200
        for name in NAMES[:3]:
            made = await self.post(0, "/namespaces/db/tables", {"name": name, "schema": schema("x")})
            assert made.status == 200, await made.text()
        assert (await self.post(0, "/transactions/commit", of_both(0))).status == 204

    @property
    def is_over(self) -> bool:
        return self._answers >= self._wanted and len(self._seen) >= self._wanted / 50

    async def transact(self) -> None:
        """Gives both tables the same number, again and again."""
        for number in count(1):
            if self.is_over:
                return
            answer = await self.post(number, "/transactions/commit", of_both(number))
            self.counted[f"transactions {answer.status}"] += 1
            await asyncio.sleep(PAUSE_S)

    async def rename(self) -> None:
        """Renames a table from `c` to `d`, and back, again and again."""
        for number in count(1):
            if self.is_over:
                return
            source, destination = ("c", "d") if number % 2 else ("d", "c")
            answer = await self.post(number, "/tables/rename", renaming(source, destination))
            assert answer.status == 204, await answer.text()
            self.counted["renames"] += 1
            await asyncio.sleep(PAUSE_S)

    async def read(self, number: int) -> None:
        """Checks that each answer has both tables with one number, and one of the two names."""
        while not self.is_over:
            number += 1
            answer = await self.post(number, "/resolve", BODY)
            if answer.status == 503:
                self.counted["given up"] += 1
                await asyncio.sleep(PAUSE_S)
                continue
            assert answer.status == 200, await answer.text()
            found = await answer.json()
            assert found["consistent"] is True
            one, two, old, new = found["relations"]
            numbers = {each["result"]["table"]["metadata"]["properties"]["number"] for each in (one, two)}
            assert len(numbers) == 1, f"half of a transaction: {numbers}"
            assert sorted([old["status"], new["status"]]) == ["loaded", "not-found"]
            self._answers += 1
            self._seen.add((numbers.pop(), old["status"] == "loaded"))

    def __str__(self) -> str:
        return f"{self._answers} answers of {len(self._seen)} instants, {dict(self.counted)}"


def of_both(number: int) -> JsonObject:
    """A transaction that sets one property of two tables."""
    return transaction(set_property("number", str(number)), "a", "b")


@pytest.mark.parametrize("wanted", [500, pytest.param(READS, marks=pytest.mark.slow)])
async def test_no_answer_has_half_of_a_transaction_or_both_names_of_a_table(wanted: int, tmp_path: Path) -> None:
    store = f"file:{tmp_path / 'store'}"
    with ArcoServer(store, tmp_path / "one.log") as one, ArcoServer(store, tmp_path / "two.log") as two:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as session:
            cuts = Cuts(session, [one.uri, two.uri], wanted)
            await cuts.set_up()
            async with asyncio.timeout(BOUND_S), asyncio.TaskGroup() as group:
                group.create_task(cuts.transact())
                group.create_task(cuts.rename())
                for number in range(READERS):
                    group.create_task(cuts.read(number))
    print(cuts)
    assert cuts.counted["given up"] < wanted / 10
