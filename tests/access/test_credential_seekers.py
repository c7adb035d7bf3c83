"""Those who may do something in a realm, and try to get more files by it: keys of a folder beside theirs, another
catalog's locations, what was vended to others, and what the operator allows servers to ask."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import cast

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.locations import Location
from arco_catalog.vending.service import Issuers, Vending
from arco_catalog.vending.static_keys import StaticIssuer
from arco_catalog.vending.storage_policy import StoragePolicy
from tests.access.test_delegation import (
    EITHER,
    ENDPOINT,
    LIFETIME_MS,
    SIGNED,
    VENDED,
    Fixture,
    T,
    credentials_of,
    lake,
    location_of,
    to_sign,
)
from tests.support.realm_service import on_catalog, on_namespace, on_table, table_request
from tools.support.asgi_client import Answer, Client

TABLES = "/v1/lake/namespaces/db/tables"
MINE, THEIRS = "s3://bucket/lake/db", "s3://bucket/lake/hr"

# Keys of prefixes.


def write_keys(file: Path) -> None:
    keys = [
        {
            "prefix": prefix,
            "opens-whole-prefix": True,
            **{
                right: {"access-key-id": f"{name}-{right}", "secret-access-key": "secret"}
                for right in ("reader", "writer")
            },
        }
        for name, prefix in (("mine", MINE), ("theirs", THEIRS))
    ]
    file.write_text(json.dumps(keys))


@asynccontextmanager
async def keys_by_namespace(file: Path) -> AsyncIterator[tuple[Fixture, Client]]:
    """A lake with a key for the folder of each namespace, and a principal with all privileges in one of them."""
    write_keys(file)
    async with lake(stsUnavailable=True) as it:
        static = StaticIssuer(str(file), it.app.clock.now_ms, 3_600)
        policy = StoragePolicy.of([ENDPOINT, it.sts.uri])
        vending = Vending(Issuers(static=static), it.app.clock.now_ms, it.outcomes.append, policy=policy)
        it.app.vending = lambda: vending
        it.owner = it.app.client("owner", app=it.app.serve())
        hr = await it.owner.post("/v1/lake/namespaces", {"namespace": ["hr"]})
        assert hr.status == 200
        made = await it.owner.post("/v1/lake/namespaces/hr/tables", table_request("t"))
        assert location_of(made).startswith(THEIRS)
        rights = "TABLE_FULL_METADATA", "TABLE_WRITE_DATA", "NAMESPACE_FULL_METADATA", "VIEW_FULL_METADATA"
        await it.app.principal("seeker", *(on_namespace(right, "db") for right in rights))
        yield it, it.app.client("seeker", app=it.app.serve())


def beside(place: str) -> Iterator[str]:
    """Spellings of a folder, and of what is in and around it."""
    _, _, rest = place.partition("://")
    bucket, _, path = rest.partition("/")
    endings = ("", "/", "//", "/new", "/t", "/new/..", "/../db/../hr/x", "/./x", "/%2e%2e/x", "/x%2f..", "/?x", "/#")
    for ending in endings:
        yield f"s3://{bucket}/{path}{ending}"
    for scheme in ("s3a", "s3n", "S3"):
        yield f"{scheme}://{bucket}/{path}/new"
    yield from (f"s3://{bucket}//{path}/x", f"s3://{bucket}/lake/db/../hr/x", f"s3://{bucket}/lake/%68r/x")
    yield from (
        f"s3://{bucket}/lake/%2568r/x",
        f"s3://{bucket}/lake",
        f"s3://{bucket}",
        f"s3://{bucket}/lake/db/%2e%2e/hr/x",
    )
    yield from (
        f"s3://{bucket}/{path}\\x",
        f"s3://{bucket}%2f{path}/x",
        f"s3://{bucket.upper()}/{path}/x",
        f"s3:/{bucket}/{path}",
    )
    yield from (
        f"s3://{bucket}/lake/db%2f..%2fhr/x",
        f"s3://{bucket}/lake/hr /x",
        f"gs://{bucket}/{path}/x",
        f"{path}/x",
    )


WAYS = (
    "location",
    "staged",
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)


def requests(place: str, name: str) -> Iterator[tuple[str, JsonObject]]:
    new = table_request(name)
    for way in WAYS:
        match way:
            case "location":
                yield TABLES, {**new, "location": place}
            case "staged":
                yield TABLES, {**new, "location": place, "stage-create": True}
            case _:
                yield TABLES, {**new, "properties": {way: place}}
                yield TABLES, {**new, "properties": {way: place}, "stage-create": True}
                update: JsonObject = {"action": "set-properties", "updates": {way: place}}
                yield T, {"requirements": [], "updates": [update]}
                table: JsonObject = {
                    "identifier": {"namespace": ["db"], "name": "t"},
                    "requirements": [],
                    "updates": [update],
                }
                yield "/v1/lake/transactions/commit", {"table-changes": [table]}
    yield T, {"requirements": [], "updates": [{"action": "set-location", "location": place}]}
    file = f"{place}/metadata/1.metadata.json"
    yield "/v1/lake/namespaces/db/register", {"name": name, "metadata-location": file}
    yield "/v1/lake/namespaces/db/register", {"name": "t", "metadata-location": file, "overwrite": True}
    yield "/v1/lake/namespaces/db/properties", {"updates": {"location": place}}
    yield "/v1/lake/namespaces", {"namespace": ["db", name], "properties": {"location": place}}


async def test_all_privileges_in_one_namespace_give_no_key_of_anothers_folder(tmp_path: Path) -> None:
    async with keys_by_namespace(tmp_path / "keys.json") as (_, seeker):
        tries = [each for place in beside(THEIRS) for each in requests(place, "new")]
        for target, body in tries:
            answer = await seeker.post(target, body, **EITHER)
            assert answer.status in (400, 403, 404), (target, body, answer.status, answer.body)
            assert b"theirs-" not in answer.body
        given = await seeker.get(T, **VENDED)

        assert credentials_of(given)[0]["config"] != {}
        assert b"mine-writer" in given.body
        assert b"theirs-" not in given.body + (await seeker.get(f"{T}/credentials")).body


async def test_a_table_that_moves_takes_no_key_along(tmp_path: Path) -> None:
    """Renamed, dropped and made again, registered elsewhere: a key goes by where the files are."""
    async with keys_by_namespace(tmp_path / "keys.json") as (it, seeker):
        theirs = "/v1/lake/namespaces/hr/tables"
        moves: Sequence[tuple[JsonObject, JsonObject]] = (
            ({"namespace": ["hr"], "name": "t"}, {"namespace": ["db"], "name": "stolen"}),
            ({"namespace": ["db"], "name": "t"}, {"namespace": ["hr"], "name": "moved"}),
        )
        for source, destination in moves:
            moved: JsonObject = {"source": source, "destination": destination}
            assert (await seeker.post("/v1/lake/tables/rename", moved)).status in (403, 404)
        file = (await it.owner.get(f"{theirs}/t")).json["metadata-location"]
        for name, overwrite in (("stolen", False), ("t", True)):
            register: JsonObject = {"name": name, "metadata-location": file, "overwrite": overwrite}
            assert (await seeker.post("/v1/lake/namespaces/db/register", register, **VENDED)).status in (400, 403)
        # What lies in their folder has their key, wherever its name is; and the other way round.
        for source, destination in moves:
            moved = {"source": source, "destination": destination}
            assert (await it.owner.post("/v1/lake/tables/rename", moved)).status == 204
        await it.app.principal("guest", on_table("TABLE_READ_DATA", "db", "stolen"))
        guest = it.app.client("guest", app=it.app.serve())
        assert b"theirs-reader" in (await guest.get(f"{TABLES}/stolen", **VENDED)).body
        assert (await guest.get(f"{theirs}/moved", **VENDED)).status == 404
        assert (await it.owner.delete(f"{TABLES}/stolen")).status == 204
        again = await it.owner.post(TABLES, table_request("stolen"), **VENDED)
        assert b"mine-writer" in again.body
        assert (await guest.get(f"{TABLES}/stolen", **VENDED)).status == 404


async def forget_grant(it: Fixture) -> None:
    for right in ("TABLE_WRITE_DATA", "TABLE_FULL_METADATA"):
        await it.app.revoke("seeker", on_namespace(right, "db"))


async def forget_role(it: Fixture) -> None:
    await it.app.ok("DELETE", "principals/seeker/principal-roles/seeker-role")


async def forget_principal(it: Fixture) -> None:
    await it.app.ok("DELETE", "principals/seeker")


async def forget_catalog_role(it: Fixture) -> None:
    await it.app.ok("DELETE", "principal-roles/seeker-role/catalog-roles/lake/seeker-in-lake")


async def drop_table(it: Fixture) -> None:
    assert (await it.owner.delete(T)).status == 204
    assert (await it.owner.delete(f"{TABLES}/new")).status == 204
    await forget_grant(it)


async def move_catalog(it: Fixture) -> None:
    catalog = await it.app.ok("GET", "catalogs/lake")
    place = "s3://bucket/lake/other"
    storage: JsonObject = {**cast(JsonObject, catalog["storageConfigInfo"]), "allowedLocations": [place]}
    change: JsonObject = {"currentEntityVersion": catalog["entityVersion"], "storageConfigInfo": storage}
    await it.app.ok("PUT", "catalogs/lake", {**change, "properties": {"default-base-location": place}})


@pytest.mark.parametrize(
    "end", [forget_grant, forget_role, forget_principal, forget_catalog_role, drop_table, move_catalog]
)
async def test_whatever_ends_a_right_ends_keys_and_signatures_on_every_server_and_in_every_answer(
    tmp_path: Path, end: Callable[[Fixture], Awaitable[None]]
) -> None:
    async with keys_by_namespace(tmp_path / "keys.json") as (it, seeker):
        created, staged = table_request("new"), {**table_request("staged"), "stage-create": True}
        key, another = it.app.key(), it.app.key()
        elsewhere = it.app.client("seeker", app=it.app.serve())
        made = await seeker.post(TABLES, created, **VENDED, idempotency_key=key)
        assert b"mine-writer" in made.body
        assert b"mine-writer" in (await seeker.post(TABLES, staged, **VENDED, idempotency_key=another)).body
        tag = (await elsewhere.get(T, **VENDED)).headers["ETag"]
        file = location_of(made).removeprefix("s3://")

        await end(it)

        for client, requested, table in product((seeker, elsewhere), (VENDED, EITHER), (T, f"{TABLES}/new")):
            answers = [
                await client.get(table, **requested),
                await client.get(table, **requested, if_none_match=tag),
                await client.get(f"{table}/credentials"),
                await client.post(f"{table}/sign", to_sign("GET", f"{file}/1")),
                await client.post(TABLES, created, **requested, idempotency_key=key),
                await client.post(TABLES, staged, **requested, idempotency_key=another),
            ]
            for answer in answers:
                assert b"mine-" not in answer.body, answer.body
                assert b"authorization" not in answer.body.lower(), answer.body


# The catalog's manager.


async def manager_of(it: Fixture) -> Client:
    manager = await it.app.principal("manager", on_catalog("CATALOG_MANAGE_CONTENT"))
    role: JsonObject = {"catalogRole": {"name": "catalog_admin"}}
    await it.app.ok("PUT", "principal-roles/manager-role/catalog-roles/lake", role)
    return manager


async def test_no_spelling_takes_a_catalogs_manager_into_another_catalog_or_its_state() -> None:
    async with lake() as it:
        other = "s3://bucket/other"
        await it.app.catalog("other", base=other, storage=it.storage)
        manager, before = await manager_of(it), await it.app.ok("GET", "catalogs/lake")
        forbidden = [Location.parse(other), Location.parse("s3://bucket/_realm")]
        configuration = cast(JsonObject, before["storageConfigInfo"])
        places = [*beside(other), *beside("s3://bucket/_realm"), *beside("s3://bucket/lake/_catalog")]
        places += [
            "s3://bucket/%6fther/x",
            "s3://bucket/%256fther",
            "s3://elsewhere/x",
            "file:///etc",
            "s3://bucket/_REALM",
        ]
        version = before["entityVersion"]
        for place in places:
            base: JsonObject = {"default-base-location": place}
            listed: JsonObject = {**configuration, "allowedLocations": ["s3://bucket/lake", place]}
            for change in (
                {"properties": base},
                {"storageConfigInfo": listed},
                {"properties": base, "storageConfigInfo": configuration},
            ):
                body: JsonObject = {"currentEntityVersion": version, **cast(JsonObject, change)}
                answer = await it.app.manage("PUT", "catalogs/lake", body, manager)
                if answer.status != 200:
                    assert answer.status == 400, (place, answer.status, answer.body)
                    continue
                version = answer.json["entityVersion"]
                allowed = cast(list[str], cast(JsonObject, answer.json["storageConfigInfo"])["allowedLocations"])
                for location in map(Location.parse, allowed):
                    assert not location.reserved, place
                    assert not location.inside(forbidden[0]), place
                    assert not forbidden[0].inside(location), place


CONFIGURATIONS: Sequence[JsonObject] = (
    {"endpoint": ENDPOINT},
    {"endpoint": "https://evil.example.com"},
    {"stsEndpoint": "http://169.254.169.254"},
    {"region": "evil"},
    {"region": "x.evil.example.com/"},
    {"roleArn": "arn:aws:iam::123456789012:role/unlisted"},
    {"roleArn": "arn:aws:iam::210987654321:role/theirs"},
    {"roleArn": "no role"},
    {"storageType": "GCS", "gcsServiceAccount": "a@evil.example.com"},
    {"storageType": "AZURE"},
    {"storageType": "NONE"},
)


async def test_only_principals_that_may_change_catalogs_learn_what_the_operator_allows() -> None:
    async with lake() as it:
        it.app.storage_policy = StoragePolicy.of([ENDPOINT, it.sts.uri], ["arn:aws:iam::123456789012:role/lake*"])
        seekers = [
            await it.app.principal("stranger"),
            await it.app.principal("reader", on_table("TABLE_READ_DATA", "db", "t")),
            await it.app.principal("writer", on_namespace("TABLE_FULL_METADATA", "db")),
            await it.app.principal("lister", on_catalog("CATALOG_READ_PROPERTIES")),
        ]
        for seeker, configuration, name in product(seekers, CONFIGURATIONS, ("lake", "none")):
            config: JsonObject = {**it.storage, **configuration, "allowedLocations": ["s3://bucket/new"]}
            base: JsonObject = {"default-base-location": "s3://bucket/new"}
            catalog: JsonObject = {"name": name, "properties": base, "storageConfigInfo": config}
            change: JsonObject = {"currentEntityVersion": 1, "storageConfigInfo": config}
            for answer in (
                await it.app.manage("POST", "catalogs", {"catalog": catalog}, seeker),
                await it.app.manage("PUT", f"catalogs/{name}", change, seeker),
            ):
                assert answer.status in (403, 404), (configuration, answer.status, answer.body)


# What was vended to others.

REQUESTED: Sequence[dict[str, str]] = ({}, VENDED, SIGNED, EITHER)


def secrets_in(answer: Answer) -> bool:
    return b"vended" in answer.body.replace(b"vended-credentials", b"")


async def test_no_tag_of_another_principal_or_time_gets_or_keeps_credentials() -> None:
    async with lake() as it:
        grant = on_table("TABLE_READ_DATA", "db", "t")
        clients = {
            "owner": it.owner,
            "reader": await it.app.principal("reader", grant),
            "looker": await it.app.principal("looker", on_table("TABLE_READ_PROPERTIES", "db", "t")),
            "stranger": await it.app.principal("stranger"),
        }

        async def tags() -> list[str]:
            answers = [
                await clients[name].get(T, **requested) for name in ("owner", "reader") for requested in REQUESTED
            ]
            return [answer.headers["ETag"] for answer in answers if answer.status == 200]

        held = await tags()
        await it.app.clock.sleep(LIFETIME_MS / 2_000 + 1)
        held += await tags()
        held += ['"*"', "*", ", ".join(held), *(f"W/{tag.removeprefix('W/')}" for tag in held)]
        for path, requested, tag in product((T, f"{T}/credentials"), REQUESTED, held):
            headers = {**requested, "if_none_match": tag}
            for name in ("looker", "stranger"):
                answer = await clients[name].get(path, **headers)
                allowed = name == "looker" and path == T and not requested
                assert answer.status in ((200, 304) if allowed else (403, 404)), (name, path, tag)
                assert not secrets_in(answer)
                assert answer.status != 304 or not answer.body
            head = await clients["stranger"].send("HEAD", path, b"", headers)
            assert head.status in (404, 405)
            assert head.body == b""
        await it.app.revoke("reader", grant)
        for requested, tag in product(REQUESTED, held):
            assert (await clients["reader"].get(T, **requested, if_none_match=tag)).status == 404
