"""Access to the files of tables over HTTP: by the grants of the moment, and for one table alone."""

import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import cast
from urllib.parse import quote

import pytest
from aiohttp import web

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.vending.service import Issuers, Outcome, Vending
from arco_catalog.vending.storage_policy import StoragePolicy
from arco_catalog.vending.sts import StsIssuer
from storage_backends import ANY, Found, Version
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import RealmApp, on_catalog, on_namespace, on_table, table_request
from tests.vending.aws_policies import allows
from tests.vending.fake_clouds import Asked, FakeCloud, OwnKeys, connections, fake_cloud, text
from tests.vending.test_sts import ROLE, answer, refusal
from tools.support.asgi_client import Answer, Client
from tools.support.environment import PROJECT
from tools.support.wrapped_stores import CountingStore

T = "/v1/lake/namespaces/db/tables/t"
VENDED = {"x_iceberg_access_delegation": "vended-credentials"}
SIGNED = {"x_iceberg_access_delegation": "remote-signing"}
EITHER = {"x_iceberg_access_delegation": "vended-credentials,remote-signing"}
ENDPOINT = "http://127.0.0.1:9000"
DB = "s3://bucket/lake/db"
LIFETIME_MS = 3_600_000


class Fixture:
    """A realm whose catalog `lake` lies in a bucket, and the STS that vends for it."""

    def __init__(
        self, app: RealmApp, sts: FakeCloud, outcomes: list[Outcome], storage: JsonObject, issuers: Issuers
    ) -> None:
        self.app, self.sts, self.outcomes, self.storage, self.issuers = app, sts, outcomes, storage, issuers
        self.owner: Client

    async def start(self) -> "Fixture":
        await self.app.start()
        await self.app.catalog(storage=self.storage)
        self.owner = await self.app.principal("owner", on_catalog("CATALOG_MANAGE_CONTENT"))
        assert (await self.owner.post("/v1/lake/namespaces", {"namespace": ["db"]})).status == 200
        await self.make("t")
        return self

    async def make(self, name: str, **more: str | bool | JsonObject) -> Answer:
        made = await self.owner.post("/v1/lake/namespaces/db/tables", {**table_request(name), **more})
        assert made.status == 200, made.body
        return made

    async def set(self, **properties: str) -> None:
        change = {"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]}
        assert (await self.owner.post(T, cast(JsonObject, change))).status == 200

    @property
    def policies(self) -> list[str]:
        """The session policies of all requests to STS, in order."""
        return [request.form["Policy"] for request in self.sts.asked]

    async def stored(self) -> bytes:
        """Everything in the store."""
        found: list[bytes] = []
        assert isinstance(self.app.store, MemoryStore)
        for key in self.app.store.keys(""):
            object_ = await self.app.store.get(key)
            assert isinstance(object_, Found)
            found.append(object_.body)
        return b"\n".join(found)


@asynccontextmanager
async def lake(**storage: str | bool) -> AsyncIterator[Fixture]:
    clock, outcomes = FakeRuntime(), list[Outcome]()

    def issue(_: Asked) -> web.Response:
        end = datetime.fromtimestamp((clock.now_ms() + LIFETIME_MS) / 1000, UTC)
        token = f"vended-token-{len(sts.asked)}"
        return web.Response(text=answer(token=token, expiration=f"{end:%Y-%m-%dT%H:%M:%SZ}"), content_type="text/xml")

    async with fake_cloud(issue) as sts, connections(clock) as outbound:
        issuers = Issuers(s3=StsIssuer(outbound, OwnKeys(), clock.now_ms), signer=OwnKeys())
        policy = StoragePolicy.of([sts.uri, ENDPOINT])
        vending = Vending(issuers, clock.now_ms, outcomes.append, outbound, policy=policy)
        config: JsonObject = {
            "storageType": "S3",
            "roleArn": ROLE,
            "stsEndpoint": sts.uri,
            "endpoint": ENDPOINT,
            "pathStyleAccess": True,
            "region": "us-east-1",
            **storage,
        }
        app = RealmApp(clock=clock, url="s3://bucket", vending=lambda: vending, storage_policy=policy)
        yield await Fixture(app, sts, outcomes, config, issuers).start()


def config_of(answer: Answer) -> dict[str, str]:
    return cast(dict[str, str], answer.json["config"])


def credentials_of(answer: Answer) -> list[JsonObject]:
    return cast(list[JsonObject], answer.json.get("storage-credentials", []))


def token_of(answer: Answer) -> str | None:
    return config_of(answer).get("s3.session-token")


def location_of(answer: Answer) -> str:
    metadata = answer.json["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["location"])


async def test_a_warm_load_with_cached_credentials_sends_no_further_request() -> None:
    async with lake() as it:
        await it.app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))
        assert it.app.store is not None
        it.app.store = counted = CountingStore(it.app.store)
        reader = it.app.client("reader", app=it.app.serve())
        first = await reader.get(T, **VENDED)
        issued = len(it.sts.asked)

        with counted.measure() as measured:
            again = await reader.get(T, **VENDED)

        assert token_of(again) == token_of(first) is not None
        assert (measured.depth, measured.calls) == (1, 3)
        assert len(it.sts.asked) == issued


async def test_a_reader_gets_credentials_that_only_read_its_table() -> None:
    async with lake() as it:
        reader = await it.app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))

        loaded = await reader.get(T, **VENDED)

        (credential,) = credentials_of(loaded)
        assert credential == {"prefix": location_of(loaded), "config": config_of(loaded)}
        config = config_of(loaded)
        assert config["client.refresh-credentials-endpoint"] == "v1/lake/namespaces/db/tables/t/credentials"
        assert int(config["s3.session-token-expires-at-ms"]) == it.app.clock.now_ms() // 1000 * 1000 + LIFETIME_MS
        assert (config["s3.endpoint"], config["s3.access-key-id"]) == (ENDPOINT, "ASIA1")
        assert loaded.headers["Cache-Control"] == "no-store"
        (policy,) = it.policies
        files = f"arn:aws:s3:::{location_of(loaded).removeprefix('s3://')}"
        assert allows(policy, "s3:GetObject", f"{files}/data/1.parquet")
        assert not allows(policy, "s3:PutObject", f"{files}/data/1.parquet")
        assert not allows(policy, "s3:GetObject", "arn:aws:s3:::bucket/lake/db/other/1.parquet")


async def test_a_writer_gets_credentials_that_write() -> None:
    async with lake() as it:
        writer = await it.app.principal("writer", on_namespace("TABLE_WRITE_DATA", "db"))
        loaded = await writer.get(T, **VENDED)

        files = f"arn:aws:s3:::{location_of(loaded).removeprefix('s3://')}"
        assert allows(it.policies[0], "s3:PutObject", f"{files}/data/1.parquet")
        assert (await writer.get(f"{T}/credentials")).json["storage-credentials"] == credentials_of(loaded)


async def test_who_may_not_read_the_files_gets_no_table_with_delegation_and_no_credentials() -> None:
    async with lake() as it:
        looker = await it.app.principal("looker", on_table("TABLE_READ_PROPERTIES", "db", "t"))
        stranger = await it.app.principal("stranger")

        assert (await looker.get(T)).status == 200
        for answer in (await looker.get(T, **VENDED), await looker.get(f"{T}/credentials")):
            assert (answer.status, "TABLE_READ_DATA" in answer.message) == (403, True)
        for answer in (await stranger.get(T, **VENDED), await stranger.get(f"{T}/credentials")):
            assert answer.status == 404
        assert it.sts.asked == []


async def test_a_revocation_ends_vending_with_the_next_request_on_another_server() -> None:
    async with lake() as it:
        grant = on_table("TABLE_WRITE_DATA", "db", "t")
        await it.app.principal("writer", grant, on_table("TABLE_READ_DATA", "db", "t"))
        elsewhere = it.app.client("writer", app=it.app.serve())
        assert token_of(await elsewhere.get(T, **VENDED)) == "vended-token-1"

        await it.app.revoke("writer", grant)
        only_reads = await elsewhere.get(T, **VENDED)
        await it.app.revoke("writer", on_table("TABLE_READ_DATA", "db", "t"))

        assert token_of(only_reads) == "vended-token-2"
        assert not allows(it.policies[1], "s3:PutObject", "arn:aws:s3:::bucket/lake/db/t/1")
        assert [(await elsewhere.get(path, **VENDED)).status for path in (T, f"{T}/credentials")] == [404, 404]


@pytest.mark.parametrize(
    ("requested", "vended", "signed"),
    [
        (None, False, False),
        ("", False, False),
        ("something-new", False, False),
        ("something-new, Vended-Credentials", True, False),
        ("remote-signing", False, True),
        ("vended-credentials,remote-signing", True, False),
    ],
)
async def test_clients_get_a_way_of_access_that_they_request(requested: str | None, vended: bool, signed: bool) -> None:
    async with lake() as it:
        headers = {} if requested is None else {"x_iceberg_access_delegation": requested}
        loaded = await it.owner.get(T, **headers)

        assert bool(credentials_of(loaded)) == vended
        assert (config_of(loaded).get("s3.remote-signing-enabled") == "true") == signed
        assert bool(config_of(loaded)) == (vended or signed)


@pytest.mark.parametrize("storage", [{"roleArn": ""}, {"stsUnavailable": True}])
async def test_where_vending_is_impossible_requests_are_signed_if_the_client_can(
    storage: dict[str, str | bool],
) -> None:
    async with lake(**storage) as it:
        assert (await it.owner.get(T, **VENDED)).json["config"] == {}
        both = await it.owner.get(T, **EITHER)

        assert config_of(both) == {
            "client.region": "us-east-1",
            "s3.region": "us-east-1",
            "s3.endpoint": ENDPOINT,
            "s3.path-style-access": "true",
            "s3.remote-signing-enabled": "true",
            "s3.signer": "S3V4RestSigner",
            "s3.signer.endpoint": "v1/lake/namespaces/db/tables/t/sign",
            "signer.endpoint": "v1/lake/namespaces/db/tables/t/sign",
        }
        assert (await it.owner.get(f"{T}/credentials")).json == {"storage-credentials": []}


async def test_a_catalog_of_files_vends_nothing() -> None:
    app = await RealmApp(vending=lambda: Vending(Issuers(), FakeRuntime().now_ms, lambda _: None)).start()
    await app.catalog()
    owner = await app.principal("owner", on_catalog("CATALOG_MANAGE_CONTENT"))
    await owner.post("/v1/lake/namespaces", {"namespace": ["db"]})
    made = await owner.post("/v1/lake/namespaces/db/tables", table_request("t"), **VENDED)

    loaded = await owner.get(T, **EITHER)

    assert (made.status, made.json["config"], loaded.json["config"]) == (200, {}, {})
    assert (await owner.get(f"{T}/credentials")).json == {"storage-credentials": []}


async def test_a_refusal_by_the_cloud_names_no_role_to_the_client() -> None:
    async with lake() as it:
        it.sts.answers[:] = [text(refusal("AccessDenied"), 403)]

        loaded = await it.owner.get(T, **VENDED)

        assert loaded.status == 500
        assert "role" not in loaded.message
        made = await it.owner.post("/v1/lake/namespaces/db/tables", table_request("u"), **VENDED)
        assert (made.status, made.json["config"]) == (200, {})


async def test_a_created_table_comes_with_credentials_by_the_grants_of_now() -> None:
    async with lake() as it:
        grants = on_namespace("TABLE_CREATE", "db"), on_namespace("TABLE_WRITE_DATA", "db")
        writer = await it.app.principal("writer", *grants)
        key, tables = it.app.key(), "/v1/lake/namespaces/db/tables"

        made = await writer.post(tables, table_request("new"), **VENDED, idempotency_key=key)
        again = await writer.post(tables, table_request("new"), **VENDED, idempotency_key=key)
        assert (made.status, token_of(made)) == (200, "vended-token-1")
        assert (again.json, again.headers["ETag"]) == (made.json, made.headers["ETag"])
        assert b"vended" not in await it.stored()

        await it.app.revoke("writer", grants[1])
        revoked = await writer.post(tables, table_request("new"), **VENDED, idempotency_key=key)
        assert (revoked.status, revoked.json["metadata"], revoked.json["config"]) == (200, made.json["metadata"], {})
        assert credentials_of(revoked) == []


async def test_a_replay_for_a_table_that_was_dropped_has_no_credentials() -> None:
    async with lake() as it:
        key, tables = it.app.key(), "/v1/lake/namespaces/db/tables"
        made = await it.owner.post(tables, table_request("new"), **VENDED, idempotency_key=key)
        assert token_of(made) is not None
        assert (await it.owner.delete(f"{tables}/new")).status == 204
        file: JsonObject = {"name": "new", "metadata-location": made.json["metadata-location"]}
        assert (await it.owner.post("/v1/lake/namespaces/db/register", file)).status == 200

        replayed = await it.owner.post(tables, table_request("new"), **VENDED, idempotency_key=key)

        assert (replayed.status, replayed.json["config"]) == (200, {})


WRITTEN = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize(
    "elsewhere",
    [None, "s3://bucket", "s3://bucket/lake", "s3://bucket/_realm", "s3://bucket/elsewhere", "s3://other/t"],
)
async def test_metadata_that_a_writer_replaced_opens_nothing_more(name: str, elsewhere: str | None) -> None:
    """Who may write a table's files may overwrite its metadata file, too."""
    async with lake() as it:
        other, loaded = elsewhere or location_of(await it.make("other")), await it.owner.get(T)
        properties: JsonObject = {name: other}
        forged: JsonObject = {**cast(JsonObject, loaded.json["metadata"]), "properties": properties}
        assert it.app.store is not None
        key = str(loaded.json["metadata-location"]).removeprefix("s3://bucket/")
        await it.app.store.put(key, dumps(forged), ANY)

        answer = await it.app.client("owner", app=it.app.serve()).get(T, **VENDED)

        metadata = cast(JsonObject, answer.json["metadata"])
        assert cast(JsonObject, metadata["properties"])[name] == other
        assert [credential["prefix"] for credential in credentials_of(answer)] == [location_of(loaded)]
        assert not allows(it.policies[0], "s3:GetObject", f"arn:aws:s3:::{other.removeprefix('s3://')}/1")


@pytest.mark.parametrize("name", WRITTEN)
async def test_a_staged_table_comes_with_credentials_for_what_it_names_where_nothing_else_lies(name: str) -> None:
    async with lake() as it:
        request: JsonObject = {**table_request("new"), "stage-create": True}
        tables, taken = "/v1/lake/namespaces/db/tables", location_of(await it.owner.get(T))

        async def stage(place: str) -> Answer:
            return await it.owner.post(tables, {**request, "properties": {name: place}}, **VENDED)

        for place in (taken, "s3://bucket/lake", "s3://bucket/_realm/x", "s3://bucket/elsewhere", "s3://other/t"):
            assert (await stage(place)).status == 400
        assert it.sts.asked == []

        staged = await stage("s3://bucket/lake/files")
        keys = f"{location_of(staged).removeprefix('s3://')}/1", "bucket/lake/files/1", "bucket/lake/db/t/1"
        assert [allows(it.policies[0], "s3:PutObject", f"arn:aws:s3:::{key}") for key in keys] == [True, True, False]


async def test_a_staged_table_comes_with_credentials_for_where_it_may_lie() -> None:
    async with lake() as it:
        tables = "/v1/lake/namespaces/db/tables"
        request = {**table_request("new"), "stage-create": True}
        chosen = {**request, "location": "s3://bucket/lake/db/chosen"}
        key = it.app.key()

        staged = await it.owner.post(tables, request, **VENDED, idempotency_key=it.app.key())
        there = await it.owner.post(tables, chosen, **VENDED, idempotency_key=key)
        assert credentials_of(staged)[0]["prefix"] == location_of(staged)
        assert credentials_of(there)[0]["prefix"] == "s3://bucket/lake/db/chosen"
        assert b"vended" not in await it.stored()

        await it.make("other", location="s3://bucket/lake/db/chosen")
        replayed = await it.owner.post(tables, chosen, **VENDED, idempotency_key=key)
        assert (replayed.status, replayed.json["config"]) == (200, {})
        for location in ("s3://bucket/elsewhere", "s3://bucket/lake/db", location_of(await it.owner.get(T))):
            refused = await it.owner.post(tables, {**request, "location": location}, **VENDED)
            assert (refused.status, len(it.sts.asked)) == (400, 2)


def staged_path(staged: Answer, what: str) -> str:
    """The path at which a client that staged a table gets new credentials."""
    name = {"credentials": "client.refresh-credentials-endpoint", "sign": "signer.endpoint"}[what]
    return f"/{config_of(staged)[name]}"


async def test_access_to_a_staged_table_goes_on_until_it_is_made_and_after() -> None:
    async with lake() as it:
        grants = on_namespace("TABLE_CREATE", "db"), on_namespace("TABLE_WRITE_DATA", "db")
        writer = await it.app.principal("writer", *grants)
        tables, new = "/v1/lake/namespaces/db/tables", "/v1/lake/namespaces/db/tables/new"
        request = {**table_request("new"), "stage-create": True, "properties": {"write.data.path": f"{DB}/files"}}

        vended = await writer.post(tables, request, **VENDED)
        signed = await writer.post(tables, {**request, "location": location_of(vended)}, **SIGNED)
        refreshed, signing = staged_path(vended, "credentials"), staged_path(signed, "sign")
        there = (f"{location_of(vended)}/metadata/1".removeprefix("s3://"), f"{DB}/files/1".removeprefix("s3://"))
        assert (await writer.get(refreshed)).json["storage-credentials"] == credentials_of(vended)
        for file in there:
            assert (await writer.post(signing, to_sign("PUT", file))).status == 200
        for elsewhere in ("bucket/lake/db/other/1", location_of(await it.owner.get(T)).removeprefix("s3://") + "/1"):
            assert (await writer.post(signing, to_sign("GET", elsewhere))).status == 403
        assert (await writer.get(f"{new}/credentials")).status == 404

        await it.make("new", location=location_of(vended))
        assert (await writer.post(signing, to_sign("PUT", there[0]))).status == 200
        assert (await writer.post(signing, to_sign("PUT", there[1]))).status == 403
        made = await writer.get(refreshed)
        assert [each["prefix"] for each in credentials_of(made)] == [location_of(vended)]


async def test_a_place_for_a_staged_table_opens_nothing_that_a_staged_table_could_not_have() -> None:
    async with lake() as it:
        await it.make("dropped")
        dropped = location_of(await it.owner.get("/v1/lake/namespaces/db/tables/dropped"))
        assert (await it.owner.delete("/v1/lake/namespaces/db/tables/dropped")).status == 204
        creates, reads = on_namespace("TABLE_CREATE", "db"), on_namespace("TABLE_READ_DATA", "db")
        writer = await it.app.principal("writer", creates, on_namespace("TABLE_WRITE_DATA", "db"))
        reader = await it.app.principal("reader", reads)
        creator = await it.app.principal("creator", creates)
        stranger = await it.app.principal("stranger")
        before = len(it.sts.asked)

        def place(location: str, what: str = "credentials") -> str:
            return f"/v1/lake/namespaces/db/tables/new/{what}?staged-location={quote(location, safe='')}"

        taken = location_of(await it.owner.get(T))
        for location in (taken, f"{taken}/data", DB, "s3://bucket/lake", "s3://bucket/else", "nonsense", ""):
            for client in (writer, it.owner):
                assert (await client.get(place(location))).status == 404
                signed = await client.post(place(location, "sign"), to_sign("GET", "bucket/lake/db/new/1"))
                assert signed.status == 404
        many = "&".join([place(f"{DB}/free").partition("?")[2]] * 6)
        assert (await writer.get(f"/v1/lake/namespaces/db/tables/new/credentials?{many}")).status == 404
        for client in (reader, creator, stranger):
            assert (await client.get(place(f"{DB}/free"))).status in (403, 404)
            free = to_sign("GET", "bucket/lake/db/free/1")
            assert (await client.post(place(f"{DB}/free", "sign"), free)).status in (403, 404)
        outside = await writer.get(place("s3://bucket/lake/elsewhere/new"))
        kept = await (await it.app.principal("other", creates, on_table("TABLE_WRITE_DATA", "db", "t"))).get(
            place(dropped)
        )
        assert (outside.status, kept.status) == (404, 404)
        assert len(it.sts.asked) == before
        assert (await writer.get(place(f"{DB}/free"))).status == 200


async def test_a_registered_table_comes_with_credentials() -> None:
    async with lake() as it:
        file = (await it.owner.post(f"{T}/unregister", {})).json["metadata-location"]
        request: JsonObject = {"name": "again", "metadata-location": file}

        registered = await it.owner.post("/v1/lake/namespaces/db/register", request, **VENDED)

        assert credentials_of(registered)[0]["prefix"] == location_of(registered)


async def test_every_location_that_the_table_names_is_vended_and_those_that_it_named_are_not() -> None:
    async with lake() as it:
        places = {"write.data.path": "s3://bucket/lake/files", "write.metadata.path": "s3://bucket/lake/meta"}
        await it.set(**places)
        named = await it.owner.get(T, **VENDED)
        await it.set(**{"write.data.path": "s3://bucket/lake/files/deeper"})
        await it.owner.get(T, **VENDED)

        keys = (
            f"{location_of(named).removeprefix('s3://bucket/')}/1",
            "lake/files/1",
            "lake/files/deeper/1",
            "lake/meta/1",
        )
        opened = [[allows(each, "s3:PutObject", f"arn:aws:s3:::bucket/{key}") for key in keys] for each in it.policies]
        assert opened == [[True, True, True, True], [True, False, True, True]]


async def test_a_location_that_the_catalog_no_longer_allows_is_not_vended() -> None:
    async with lake() as it:
        await it.set(**{"write.data.path": "s3://bucket/lake/files"})
        catalog = await it.app.ok("GET", "catalogs/lake")
        home = location_of(await it.owner.get(T))
        properties: JsonObject = {**cast(JsonObject, catalog["properties"]), "default-base-location": home}
        storage: JsonObject = {**cast(JsonObject, catalog["storageConfigInfo"]), "allowedLocations": [home]}
        change: JsonObject = {"currentEntityVersion": catalog["entityVersion"], "properties": properties}
        await it.app.ok("PUT", "catalogs/lake", {**change, "storageConfigInfo": storage})

        await it.owner.get(T, **VENDED)

        assert not allows(it.policies[0], "s3:GetObject", "arn:aws:s3:::bucket/lake/files/1")
        assert allows(it.policies[0], "s3:GetObject", f"arn:aws:s3:::{home.removeprefix('s3://')}/1")


async def test_a_client_gets_a_304_only_while_its_credentials_are_the_current_ones() -> None:
    async with lake() as it:
        grant = on_table("TABLE_WRITE_DATA", "db", "t")
        writer = await it.app.principal("writer", grant, on_table("TABLE_READ_DATA", "db", "t"))
        plain = await writer.get(T)
        tag = (await writer.get(T, **VENDED)).headers["ETag"]
        assert tag != plain.headers["ETag"]
        held = {**VENDED, "if_none_match": tag}
        assert [(await writer.get(T, **held)).status for _ in range(2)] == [304, 304]
        assert (await writer.get(T, **{**SIGNED, "if_none_match": tag})).status == 200

        await it.app.clock.sleep(LIFETIME_MS / 2_000 + 1)
        renewed = await writer.get(T, **held)
        assert (renewed.status, token_of(renewed)) == (200, "vended-token-2")

        await it.app.revoke("writer", grant)
        assert (await writer.get(T, **{**VENDED, "if_none_match": renewed.headers["ETag"]})).status == 200


async def test_credentials_are_nowhere_but_in_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    async with lake() as it:
        with caplog.at_level(logging.DEBUG):
            loaded = await it.owner.get(T, **VENDED)

        assert b"vended/secret+" in loaded.body
        for secret in ("vended-token", "vended/secret"):
            assert secret not in caplog.text
            assert secret.encode() not in await it.stored()
        assert it.outcomes == [Outcome.ISSUED]


def to_sign(method: str, path: str) -> JsonObject:
    return {"region": "us-east-1", "method": method, "uri": f"{ENDPOINT}/{path}", "headers": {}}


async def test_requests_are_signed_as_the_caller_may_make_them() -> None:
    async with lake() as it:
        reader = await it.app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))
        stranger = await it.app.principal("stranger")
        file = f"{location_of(await it.owner.get(T)).removeprefix('s3://')}/1"

        for client, method in ((reader, "GET"), (reader, "HEAD"), (it.owner, "PUT"), (it.owner, "DELETE")):
            signed = await client.post(f"{T}/sign", to_sign(method, file))
            assert (signed.status, signed.headers["Cache-Control"]) == (200, "no-cache")
            assert signed.json["uri"] == f"{ENDPOINT}/{file}"
        for method in ("PUT", "POST", "DELETE", "put"):
            denied = await reader.post(f"{T}/sign", to_sign(method, file))
            assert (denied.status, "TABLE_WRITE_DATA" in denied.message) == (403, True)
        outside = await it.owner.post(f"{T}/sign", to_sign("GET", "bucket/lake/db/other/1"))
        assert (outside.status, outside.message[:10]) == (403, "Not signed")
        assert (await stranger.post(f"{T}/sign", to_sign("GET", file))).status == 404


async def test_the_parts_of_an_upload_are_listed_by_who_may_write() -> None:
    async with lake() as it:
        reader = await it.app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))
        file = f"{location_of(await it.owner.get(T)).removeprefix('s3://')}/1"
        request = to_sign("GET", f"{file}?uploadId=abc")

        signed = await it.owner.post(f"{T}/sign", request)
        denied = await reader.post(f"{T}/sign", request)

        assert (signed.status, denied.status, "ListParts needs the right to write" in denied.message) == (
            200,
            403,
            True,
        )
        [policy] = it.policies
        assert allows(policy, "s3:PutObject", f"arn:aws:s3:::{file}")


async def test_a_revocation_ends_signing_with_the_next_request() -> None:
    async with lake() as it:
        grant = on_table("TABLE_READ_DATA", "db", "t")
        reader = await it.app.principal("reader", grant)
        elsewhere = it.app.client("reader", app=it.app.serve())
        file = f"{location_of(await it.owner.get(T)).removeprefix('s3://')}/1"
        assert (await elsewhere.post(f"{T}/sign", to_sign("GET", file))).status == 200

        await it.app.revoke("reader", grant)

        assert (await reader.post(f"{T}/sign", to_sign("GET", file))).status == 404
        assert (await elsewhere.post(f"{T}/sign", to_sign("GET", file))).status == 404


async def test_what_only_reads_is_signed_by_keys_that_only_read() -> None:
    async with lake() as it:
        file = f"{location_of(await it.owner.get(T)).removeprefix('s3://')}/1"
        await it.owner.post(f"{T}/sign", to_sign("GET", file))
        await it.owner.post(f"{T}/sign", to_sign("PUT", file))

        writes = [allows(policy, "s3:PutObject", f"arn:aws:s3:::{file}") for policy in it.policies]
        assert writes == [False, True]


async def test_the_configuration_names_both_endpoints_where_there_are_realms() -> None:
    async with lake() as it:
        endpoints = (await it.owner.get("/v1/config?warehouse=lake")).json["endpoints"]

        assert isinstance(endpoints, list)
        table = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
        assert {f"GET {table}/credentials", f"POST {table}/sign"} <= {*map(str, endpoints)}


async def test_delegation_reads_nothing_more_while_credentials_are_cached() -> None:
    async with lake() as it:
        store = it.app.store
        assert isinstance(store, MemoryStore)
        get, keys = store.get, list[str]()

        async def counted(key: str, if_changed_from: Version | None = None) -> object:
            keys.append(key)
            return await get(key, if_changed_from)

        store.get = counted  # type: ignore[method-assign,assignment]
        calls: list[list[str]] = []
        for headers in (VENDED, {}, VENDED, SIGNED):
            keys.clear()
            assert (await it.owner.get(T, **headers)).status == 200
            calls.append(sorted(keys))
        assert calls[1] == calls[2] == calls[3]
        assert len(it.sts.asked) == 1


def test_a_server_whose_clients_ask_for_no_access_imports_nothing_of_it() -> None:
    served = "cli.served_realms, arco_catalog.http.tables, arco_catalog.http.table_changes, arco_catalog.http.app"
    code = f"import sys, arco_catalog.{served}; print([m for m in sys.modules if m.startswith('arco_catalog.vending')])"

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, check=True, capture_output=True, text=True, timeout=60
    )

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["endpoint", "endpointInternal", "stsEndpoint"])
async def test_creating_or_changing_a_catalog_chooses_no_host_for_the_servers_requests(name: str) -> None:
    async with fake_cloud(text(answer())) as elsewhere, lake() as it:
        catalog = await it.app.ok("GET", "catalogs/lake")
        storage: JsonObject = {**cast(JsonObject, catalog["storageConfigInfo"]), name: elsewhere.uri}
        properties: JsonObject = {"default-base-location": "s3://bucket/other"}
        config: JsonObject = {**storage, "allowedLocations": ["s3://bucket/other"]}
        other: JsonObject = {"name": "other", "properties": properties, "storageConfigInfo": config}

        refused = [
            await it.app.manage("POST", "catalogs", {"catalog": other}),
            await it.app.manage(
                "PUT", "catalogs/lake", {"currentEntityVersion": catalog["entityVersion"], "storageConfigInfo": storage}
            ),
        ]

        assert [(answer.status, "ARCO_VENDING_ENDPOINTS" in answer.message) for answer in refused] == [(400, True)] * 2
        assert (await it.app.ok("GET", "catalogs/lake"))["storageConfigInfo"] == catalog["storageConfigInfo"]
        assert elsewhere.asked == []


async def test_an_endpoint_that_the_operator_no_longer_allows_gets_no_request() -> None:
    async with lake() as it:
        it.app.vending = lambda: Vending(it.issuers, it.app.clock.now_ms, it.outcomes.append)
        owner = it.app.client("owner", app=it.app.serve())

        assert (await owner.get(T, **VENDED)).json["config"] == {}
        assert (await owner.post(f"{T}/sign", to_sign("GET", "bucket/lake/db/t/1"))).status == 403
        assert it.sts.asked == []


@pytest.mark.parametrize(
    "storage",
    [
        {"roleArn": "arn aws"},
        {"endpoint": "ftp://x"},
        {"pathStyleAccess": "yes"},
        {"stsEndpoint": "http://user@host"},
    ],
)
async def test_a_storage_configuration_that_could_not_be_used_is_refused(storage: JsonObject) -> None:
    async with lake() as it:
        base = "s3://bucket/other"
        config: JsonObject = {"storageType": "S3", "allowedLocations": [base], **storage}
        properties: JsonObject = {"default-base-location": base}
        catalog: JsonObject = {"name": "other", "properties": properties, "storageConfigInfo": config}

        refused = [
            await it.app.manage("POST", "catalogs", {"catalog": catalog}),
            await it.app.manage("PUT", "catalogs/lake", {"currentEntityVersion": 1, "storageConfigInfo": config}),
        ]

        assert [(answer.status, "storageConfigInfo" in answer.message) for answer in refused] == [(400, True)] * 2


async def test_a_plan_has_credentials_that_are_complete_and_only_read() -> None:
    """A client opens the files of a scan with these alone, whatever the catalog's configuration has."""
    async with lake() as it:
        writer = await it.app.principal("writer", on_table("TABLE_WRITE_DATA", "db", "t"))
        location = location_of(await writer.get(T))
        for headers in (VENDED, EITHER):
            planned = await writer.post(f"{T}/plan", {}, **headers)
            (credential,) = credentials_of(planned)
            config = cast(dict[str, str], credential["config"])
            assert credential["prefix"] == location
            assert config["s3.endpoint"] == ENDPOINT
            assert config["s3.path-style-access"] == "true"
            assert config["client.region"] == "us-east-1"
            assert config["client.refresh-credentials-endpoint"] == "v1/lake/namespaces/db/tables/t/credentials"
            assert int(config["s3.session-token-expires-at-ms"]) == it.app.clock.now_ms() // 1000 * 1000 + LIFETIME_MS
            assert planned.headers["Cache-Control"] == "no-store"
            fetched = await writer.get(f"{T}/plan/{planned.json['plan-id']}", **headers)
            assert credentials_of(fetched) == [credential]
        files = f"arn:aws:s3:::{location.removeprefix('s3://')}/data/1.parquet"
        assert it.policies
        for policy in it.policies:
            assert allows(policy, "s3:GetObject", files)
            assert not allows(policy, "s3:PutObject", files)


async def test_a_plan_has_no_credentials_without_the_header_or_for_signed_requests() -> None:
    async with lake() as it:
        reader = await it.app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))
        for headers in ({}, SIGNED):
            assert "storage-credentials" not in (await reader.post(f"{T}/plan", {}, **headers)).json
        assert it.sts.asked == []


async def test_the_credentials_of_a_plan_are_renewed_by_its_id() -> None:
    async with lake() as it:
        writer = await it.app.principal("writer", on_table("TABLE_WRITE_DATA", "db", "t"))
        await it.make("u")
        planned = await writer.post(f"{T}/plan", {}, **VENDED)
        plan_id = planned.json["plan-id"]
        renewed = await writer.get(f"{T}/credentials?planId={plan_id}")
        assert credentials_of(renewed) == credentials_of(planned)
        assert credentials_of(await writer.get(f"{T}/credentials")) != credentials_of(planned)
        assert (await writer.get(f"{T}/credentials?planId=x")).error_type == "NoSuchPlanIdException"
        elsewhere = await it.owner.get(f"{T.removesuffix('t')}u/credentials?planId={plan_id}")
        assert elsewhere.error_type == "NoSuchPlanIdException"
