"""Attempts to reach the files of another realm by the location of a catalog, with any folders that the operator
allows."""

from collections.abc import Sequence
from itertools import combinations, product

import pytest

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.management.catalogs import BASE_LOCATION, CatalogRequest
from arco_catalog.operations.realms import Deployment, Realm, make_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.fields import mapping, texts
from arco_catalog.state.files import Mount
from arco_catalog.state.locations import Location
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import RealmApp

REALMS = ("a", "b", "ab")
MOUNTS = ("", "/a", "/x", "/x/a", "/a/b")
PLACES = sorted(
    {"/".join(("s3://bucket", *parts)) for depth in range(4) for parts in product(("a", "b", "x"), repeat=depth)}
    | {f"s3://bucket/{name}/lake" for name in ("ab", "a b", "A", "b.", "a_")}
)


def deployment(*folders: str) -> Deployment:
    """Stores at these folders; state is in the first."""
    mounts = [Mount(Location.parse(f"s3://bucket{folder}"), MemoryStore()) for folder in folders]
    return Deployment(Settings("-"), mounts[0].store, mounts[0].root, mounts, FakeRuntime())


@pytest.mark.parametrize("state", MOUNTS)
def test_no_two_realms_may_use_places_that_touch(state: str) -> None:
    places, tries = [Location.parse(place) for place in PLACES], 0
    for further in (more for count in range(3) for more in combinations(MOUNTS, count)):
        made = deployment(state, *further)
        usable = {name: [each for each in places if Realm(name, made, at_root=False).may_use(each)] for name in REALMS}
        for one, other in combinations(REALMS, 2):
            for mine, theirs in product(usable[one], usable[other]):
                touch = mine.inside(theirs) or theirs.inside(mine)
                assert not touch, (state, further, one, mine.uri, other, theirs.uri)
        tries += 1
    assert tries == 16


def test_each_realm_has_a_folder_in_each_place_that_the_operator_allowed() -> None:
    made = deployment("/state", "/a", "/x/b")
    for name, root in product(REALMS, ("/state", "/a", "/x/b")):
        assert Realm(name, made, at_root=False).may_use(Location.parse(f"s3://bucket{root}/{name}/lake"))


HOSTILE: Sequence[str] = (
    *("b", "b/lake", "b/", "/b/lake", "a/../b", "a/%2e%2e/b", "a/..%2fb", "a/./../b/lake", "%62/lake", "%2562/lake"),
    *(
        "B/lake",
        "ab",
        "a-b",
        "a/_realm",
        "a/_REALM/core",
        "a/_realm/catalogs/x",
        "a/%5frealm",
        "_realm",
        "_catalog",
        "a/x/_catalog",
    ),
    *(
        "a/.arco-store",
        "a/_probe",
        "a\\..\\b",
        "a/x?y",
        "a/x#y",
        "a/\n",
        "a/\x00",
        "a/\u202e",
        "b\u200b",
        "ａ/lake",
        "",
        ".",
        "..",
    ),
    *("a%00/lake", "a//../b", "b%2flake", "b;a/lake", "a/lake/../../b", "a/b/%2e%2e/%2e%2e/b/lake"),
)
SCHEMES = (
    "memory:///",
    "memory://",
    "memory:/",
    "MEMORY:///",
    "memory://x/",
    "file:///",
    "s3://bucket/",
    "memory:////",
    "",
)


async def test_no_catalog_is_made_or_moved_into_the_other_realm() -> None:
    app = await RealmApp(names=("a", "b")).start()
    await app.catalog("lake", base=app.base("lake", "a"))
    await app.catalog("lake", app.client("root", "b"), app.base("lake", "b"))
    assert app.store is not None
    theirs = [(entry.key, entry.version) for entry in (await app.store.list("b/")).entries]
    mine = "memory:///a/thief"
    tries = 0
    for place, scheme in product(HOSTILE, SCHEMES):
        location = f"{scheme}{place}"
        for number, (base, allowed) in enumerate(((location, [location]), (mine, [location]), (location, [mine]))):
            tries += 1
            storage: JsonObject = {"storageType": "FILE", "allowedLocations": [*allowed]}
            made: JsonObject = {"type": "INTERNAL", "name": f"t{number}", "storageConfigInfo": storage}
            made["properties"] = {"default-base-location": base}
            answer = await app.manage("POST", "catalogs", {"catalog": made})
            assert answer.status < 500, (location, answer.body)
            if answer.status == 201:
                check_is_inside(await app.ok("GET", f"catalogs/t{number}"))
                await app.ok("DELETE", f"catalogs/t{number}")
            lake = await app.ok("GET", "catalogs/lake")
            change: JsonObject = {
                "currentEntityVersion": lake["entityVersion"],
                "properties": {"default-base-location": base},
                "storageConfigInfo": storage,
            }
            changed = await app.manage("PUT", "catalogs/lake", change)
            assert changed.status in (200, 400), (location, changed.body)
            check_is_inside(await app.ok("GET", "catalogs/lake"))
    assert [(entry.key, entry.version) for entry in (await app.store.list("b/")).entries] == theirs
    assert tries > 900


def check_is_inside(catalog: JsonObject) -> None:
    """Fails unless all locations of a catalog are in the folder of `a`, and in no state."""
    for text in texts(mapping(catalog, "storageConfigInfo"), "allowedLocations"):
        location = Location.parse(text)
        assert location.inside(Location.parse("memory:///a")), text
        assert not location.reserved, text


NAMES = (
    "../b",
    "b",
    "_realm",
    "_catalog",
    "_probe",
    ".arco-store",
    "..",
    ".",
    "",
    "a/b",
    "%2e%2e",
    "lake\x00",
    "\u202elake",
)


async def test_an_operators_commands_make_no_catalog_in_the_other_realm() -> None:
    app = await RealmApp(names=("a", "b")).start()
    realm = app.realms()["a"]
    tries = 0
    for name, place in product(NAMES, ("b/lake", "b", "a/_realm/x", "", "a/../b")):
        tries += 1
        request = CatalogRequest(
            name,
            "INTERNAL",
            {BASE_LOCATION: f"memory:///{place}"},
            {"storageType": "FILE", "allowedLocations": [f"memory:///{place}"]},
        )
        with pytest.raises(CatalogError):
            await make_catalog(realm, app.session(realm), request)
    assert tries == 65
