"""An operator's own keys: given by prefix and right, never for more than was configured, and never where the prefix is
not the catalog's alone."""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.json import JsonValue
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.vending.configured import configured_vending
from arco_catalog.vending.errors import CredentialsRefused
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.service import Issuers, Outcome, Vending
from arco_catalog.vending.static_keys import StaticIssuer, longest_match, parse_static_keys
from arco_catalog.vending.storage_config import AwsStorage
from tests.support.fake_runtime import FakeRuntime

CONFIG = AwsStorage(region="auto", path_style=True)
LIFETIME_S = 600


def key(name: str) -> dict[str, JsonValue]:
    return {"access-key-id": f"{name}-id", "secret-access-key": f"{name}-secret"}


def entry(prefix: str, **keys: str) -> dict[str, JsonValue]:
    return {"prefix": prefix, "opens-whole-prefix": True, **{right: key(name) for right, name in keys.items()}}


ENTRIES: Sequence[Mapping[str, JsonValue]] = (
    entry("s3://sales", reader="bucket-reader", writer="bucket-writer"),
    entry("s3://sales/secret", reader="secret-reader"),
    entry("s3://sales/inbox/", writer="inbox-writer"),
)


def locations(*uris: str) -> list[Location]:
    return [Location.parse(uri) for uri in uris]


class Fixture:
    """Vending from a file, in a catalog that may use `allowed`."""

    def __init__(self, file: Path, *allowed: str, forbidden: Sequence[str] = ()) -> None:
        self.file, self.runtime, self.outcomes = file, FakeRuntime(), list[Outcome]()
        self.write(ENTRIES)
        issuers = Issuers(static=StaticIssuer(str(file), self.runtime.now_ms, LIFETIME_S))
        self.vending = Vending(issuers, self.runtime.now_ms, self.outcomes.append)
        self.owns = AllowedLocations(locations(*allowed), locations(*forbidden)).own

    def write(self, entries: Sequence[Mapping[str, JsonValue]]) -> None:
        self.file.write_text(json.dumps(entries))

    async def given(self, *uris: str, write: bool = False, config: AwsStorage = CONFIG) -> dict[str, str]:
        """The keys that are given, by prefix."""
        scope = Scope.of(locations(*uris), write=write)
        told = await self.vending.credentials(config, scope, "e", "alice", "v1/refresh", self.owns)
        return {each.prefix: each.config["s3.access-key-id"] for each in told}


@pytest.fixture
def fixture(tmp_path: Path) -> Fixture:
    return Fixture(tmp_path / "keys.json", "s3://sales", forbidden=["s3://other/_realm"])


@pytest.mark.parametrize(
    ("location", "reader", "writer"),
    [
        ("s3://sales/db/t", "bucket-reader", "bucket-writer"),
        ("s3://sales/secrets/t", "bucket-reader", "bucket-writer"),
        ("s3://sales/secret/t", "secret-reader", "secret-reader"),
        ("s3://sales/secret", "secret-reader", "secret-reader"),
        ("s3://sales/inbox/t", None, "inbox-writer"),
        ("s3://sales2/db/t", None, None),
        ("s3://elsewhere/sales/db/t", None, None),
        ("gs://sales/db/t", None, None),
        ("s3://sales", None, None),
    ],
)
async def test_the_key_of_the_longest_prefix_is_given_by_right_and_no_other(
    fixture: Fixture, location: str, reader: str | None, writer: str | None
) -> None:
    for write, name in ((False, reader), (True, writer)):
        expected = {} if name is None else {location: f"{name}-id"}
        assert await fixture.given(location, write=write) == expected


async def test_each_location_gets_its_own_and_one_outside_none(fixture: Fixture) -> None:
    assert await fixture.given("s3://sales/db/t", "s3://sales/secret/t", "s3://elsewhere/t") == {
        "s3://sales/secret/t": "secret-reader-id",
        "s3://sales/db/t": "bucket-reader-id",
    }


@pytest.mark.parametrize(
    ("allowed", "forbidden", "opened"),
    [
        (["s3://sales"], [], ["s3://sales/db/t", "s3://sales/secret/t"]),
        (["s3://sales/db", "s3://sales/secret"], [], ["s3://sales/secret/t"]),
        (["s3://sales/db"], [], []),
        (["s3://sales"], ["s3://sales/lake/_realm"], ["s3://sales/secret/t"]),
        (["s3://sales"], ["s3://sales/secret/_catalog"], []),
    ],
)
async def test_a_key_is_given_only_where_its_whole_prefix_is_the_catalogs_and_holds_no_state(
    tmp_path: Path, allowed: list[str], forbidden: list[str], opened: list[str]
) -> None:
    it = Fixture(tmp_path / "keys.json", *allowed, forbidden=forbidden)

    assert sorted(await it.given("s3://sales/db/t", "s3://sales/secret/t")) == opened


async def test_whoever_says_nothing_of_what_the_catalog_owns_gets_none(fixture: Fixture) -> None:
    scope = Scope.of(locations("s3://sales/db/t"), write=False)

    assert await fixture.vending.credentials(CONFIG, scope, "e", "alice") == ()


async def test_a_catalog_with_a_role_never_falls_back_on_static_keys(fixture: Fixture) -> None:
    role = AwsStorage(role_arn="arn:aws:iam::123456789012:role/lake", region="eu-west-1")

    assert await fixture.given("s3://sales/db/t", config=role) == {}


async def test_a_catalog_whose_endpoint_is_not_allowed_gets_none(
    fixture: Fixture, caplog: pytest.LogCaptureFixture
) -> None:
    assert await fixture.given("s3://sales/db/t", config=AwsStorage(endpoint="https://evil.example.com")) == {}
    assert "ARCO_VENDING_ENDPOINTS" in caplog.text


async def test_clients_are_told_of_an_expiry_that_moves_twice_a_lifetime_and_of_no_refresh(fixture: Fixture) -> None:
    scope = Scope.of(locations("s3://sales/db/t"), write=False)
    began_ms, ends = fixture.runtime.ms, list[int]()
    for _ in range(8):
        (credential,) = await fixture.vending.credentials(CONFIG, scope, "e", "alice", "v1/refresh", fixture.owns)
        left_ms = credential.expires_ms - fixture.runtime.ms
        assert LIFETIME_S * 500 < left_ms <= LIFETIME_S * 1_000
        assert credential.config == {
            "client.region": "auto",
            "s3.region": "auto",
            "s3.path-style-access": "true",
            "s3.access-key-id": "bucket-reader-id",
            "s3.secret-access-key": "bucket-reader-secret",
            "s3.session-token-expires-at-ms": str(credential.expires_ms),
        }
        ends.append(credential.expires_ms)
        await fixture.runtime.sleep(LIFETIME_S / 4)

    assert fixture.runtime.ms - began_ms == 2 * LIFETIME_S * 1_000
    assert len(set(ends)) == 4


async def test_a_key_that_the_operator_replaced_is_given_within_half_a_lifetime(fixture: Fixture) -> None:
    assert await fixture.given("s3://sales/db/t") == {"s3://sales/db/t": "bucket-reader-id"}
    fixture.write([entry("s3://sales", reader="newer")])
    await fixture.runtime.sleep(LIFETIME_S / 2)

    assert await fixture.given("s3://sales/db/t") == {"s3://sales/db/t": "newer-id"}


async def test_a_file_that_went_bad_is_an_error_that_shows_no_key(
    fixture: Fixture, caplog: pytest.LogCaptureFixture
) -> None:
    assert await fixture.given("s3://sales/db/t") == {"s3://sales/db/t": "bucket-reader-id"}
    fixture.file.write_text('[{"reader": "bucket-reader-secret"')
    await fixture.runtime.sleep(LIFETIME_S / 2)
    with caplog.at_level(logging.DEBUG), pytest.raises(CredentialsRefused):
        await fixture.given("s3://sales/db/t")
    fixture.file.unlink()
    with pytest.raises(CredentialsRefused):
        await fixture.given("s3://sales/db/t")

    assert "A client got no credentials for files" in caplog.text
    assert "secret" not in caplog.text
    assert fixture.outcomes == [Outcome.ISSUED, Outcome.REFUSED, Outcome.REFUSED]


def test_no_text_of_keys_shows_a_secret() -> None:
    keys = parse_static_keys(json.dumps(ENTRIES).encode())

    assert "bucket-reader-id" in repr(keys)
    assert "-secret'" not in repr(keys)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({}, "must hold a JSON array"),
        ([1], "is not an object, or has a field other than prefix"),
        ([{**ENTRIES[0], "extra": 1}], "has a field other than prefix"),
        ([{**ENTRIES[0], "opens-whole-prefix": False}], "opens all of it"),
        ([{"prefix": "s3://sales", "reader": key("a")}], "opens all of it"),
        ([{**ENTRIES[0], "prefix": "sales"}], "prefix"),
        ([{**ENTRIES[0], "prefix": None}], "prefix"),
        ([{**ENTRIES[0], "prefix": "gs://sales"}], "must be s3://BUCKET"),
        ([{**ENTRIES[0], "prefix": "s3:///sales"}], "must be s3://BUCKET"),
        ([{**ENTRIES[0], "prefix": "s3://sales/_realm"}], "must not be in a folder with the state of a catalog"),
        ([{**ENTRIES[0], "prefix": "s3://sales/a/../b"}], "not allowed"),
        ([{**ENTRIES[0], "prefix": "s3://sales/a*?"}], "must not contain"),
        ([entry("s3://sales")], "neither a reader nor a writer"),
        ([{**entry("s3://sales"), "reader": "secret-reader"}], "reader must have"),
        ([{**entry("s3://sales"), "reader": {"access-key-id": "a"}}], "reader must have"),
        ([{**entry("s3://sales"), "reader": {**key("a"), "x": "y"}}], "reader must have"),
        ([{**entry("s3://sales"), "writer": {**key("a"), "secret-access-key": ""}}], "writer must have"),
        ([{**entry("s3://sales"), "writer": {**key("a"), "secret-access-key": 1}}], "writer must have"),
        ([entry("s3://sales/a", reader="a"), entry("s3a://sales/a/", reader="b")], "two entries with the same prefix"),
        ([entry("s3://sales//a", reader="a")], "empty level"),
    ],
)
def test_a_file_that_is_not_whole_is_told_at_start_without_any_key(
    tmp_path: Path, document: JsonValue, told: str
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=told) as caught:
        configured_vending({"ARCO_VENDING_KEYS_FILE": str(file)}, FakeRuntime(), lambda _: None)

    assert str(caught.value).startswith("ARCO_VENDING_KEYS_FILE: ")
    assert "-secret" not in str(caught.value)


def test_a_file_that_is_not_there_is_told_at_start(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ARCO_VENDING_KEYS_FILE: the file .* cannot be read: No such file"):
        configured_vending({"ARCO_VENDING_KEYS_FILE": str(tmp_path / "none")}, FakeRuntime(), lambda _: None)


SEGMENTS = st.lists(st.sampled_from(["a", "b", "ab", "a*", "a%2a", "%61", "ü", "a b", "$", "{a}"]), max_size=4)
FOLDERS = st.builds(lambda bucket, path: Location("s3", bucket, tuple(path)), st.sampled_from(["x", "y"]), SEGMENTS)


@given(st.lists(FOLDERS, unique=True, max_size=6), FOLDERS)
def test_the_match_is_the_longest_literal_prefix_of_the_key(prefixes: list[Location], wanted: Location) -> None:
    file = [{"prefix": each.uri, "opens-whole-prefix": True, "reader": key("r")} for each in prefixes]
    try:
        keys = parse_static_keys(json.dumps(file).encode())
    except ValueError:  # one that some engine would take for another
        return
    found = longest_match(keys, wanted)

    spelled = f"{wanted.authority}/{wanted.path}/".replace("//", "/")
    around = [f"{each.authority}/{each.path}/".replace("//", "/") for each in prefixes]
    expected = max((prefix for prefix in around if spelled.startswith(prefix)), key=len, default=None)
    actual = None if found is None else f"{found.prefix.authority}/{found.prefix.path}/".replace("//", "/")
    assert actual == expected
