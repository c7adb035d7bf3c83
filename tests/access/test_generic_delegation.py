"""Access to the files of generic tables over HTTP: for one base location alone, by the grants of the moment, or not at
all, and then the client gets an error."""

from typing import cast

from arco_catalog.iceberg.json import JsonObject
from tests.access.test_delegation import ENDPOINT, Fixture, lake
from tests.support.realm_service import on_catalog, on_namespace, on_table
from tests.vending.aws_policies import allows
from tools.support.asgi_client import Answer, Client

GENERIC = "/polaris/v1/lake/namespaces/db/generic-tables"
VENDED = {"polaris_generic_table_access_delegation": "vended-credentials"}
BASE = "s3://bucket/lake/db/generic/g"
FILES = "arn:aws:s3:::bucket/lake/db/generic"


async def make(it: Fixture, **more: str) -> Answer:
    """Makes the generic table `g`, and requests access to its files."""
    return await it.owner.post(GENERIC, {"name": "g", "format": "delta", **more}, **VENDED)


async def load(client: Client) -> Answer:
    return await client.get(f"{GENERIC}/g", **VENDED)


def access_of(answer: Answer) -> list[JsonObject]:
    return cast(list[JsonObject], answer.json.get("storage-access-configs", []))


async def test_who_makes_one_gets_credentials_that_write_there_and_nowhere_else() -> None:
    async with lake() as it:
        made = await make(it, **{"base-location": BASE})

        (access,) = access_of(made)
        config = cast(JsonObject, access["config"])
        assert (access["prefix"], config["s3.endpoint"], config["s3.access-key-id"]) == (BASE, ENDPOINT, "ASIA1")
        assert made.headers["Cache-Control"] == "no-store"
        (policy,) = it.policies
        assert allows(policy, "s3:PutObject", f"{FILES}/g/_delta_log/0.json")
        for neighbour in (f"{FILES}/g2/1", f"{FILES}/other/1", "arn:aws:s3:::bucket/lake/_catalog/core/manifest.json"):
            assert not allows(policy, "s3:GetObject", neighbour)
            assert not allows(policy, "s3:PutObject", neighbour)
        assert b"vended-token" not in await it.stored()


async def test_a_reader_gets_credentials_that_only_read_it() -> None:
    async with lake() as it:
        assert (await make(it, **{"base-location": BASE})).status == 200
        reader = await it.app.principal("reader", on_namespace("TABLE_READ_DATA", "db"))

        assert [access["prefix"] for access in access_of(await load(reader))] == [BASE]
        assert allows(it.policies[-1], "s3:GetObject", f"{FILES}/g/1.parquet")
        assert not allows(it.policies[-1], "s3:PutObject", f"{FILES}/g/1.parquet")


async def test_a_load_without_access_is_refused() -> None:
    async with lake() as it:
        assert (await make(it, **{"base-location": BASE})).status == 200
        looker = await it.app.principal("looker", on_catalog("TABLE_READ_PROPERTIES"))
        stranger = await it.app.principal("stranger", on_table("TABLE_READ_DATA", "db", "t"))
        before = len(it.sts.asked)

        assert (await looker.get(f"{GENERIC}/g")).status == 200
        assert ((await load(looker)).status, (await load(stranger)).status) == (403, 404)
        assert len(it.sts.asked) == before


async def test_a_table_without_a_place_is_made_and_gives_no_access() -> None:
    async with lake() as it:
        made = await make(it)

        assert (made.status, access_of(made)) == (200, [])
        assert (await load(it.owner)).status == 403
        assert it.sts.asked == []
