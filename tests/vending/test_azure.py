"""Signatures for Azure Storage: the string to sign is held to Azure's documents and to azure-storage-blob."""

from base64 import b64encode
from typing import Any
from urllib.parse import parse_qs

import pytest
from azure.storage.blob import UserDelegationKey, generate_blob_sas, generate_container_sas

from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.state.locations import Location
from arco_catalog.vending.azure import AzureIssuer
from arco_catalog.vending.azure_sas import VERSION, DelegationKey, string_to_sign, user_delegation_sas
from arco_catalog.vending.errors import CredentialsRefused
from arco_catalog.vending.outbound import WireOutbound
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.storage_config import AzureStorage
from storage_backends.azure.config import AzureConfig
from storage_backends.azure.credentials import BearerToken
from storage_backends.base import StoreDenied, StoreUnavailable
from tests.support.fake_runtime import FakeRuntime
from tests.vending.fake_clouds import FakeCloud, connections, fake_cloud, text

VALUE = b64encode(b"a key of thirty-two bytes, truly").decode()
KEY = DelegationKey(
    "oid", "tid", "2025-12-31T23:55:00Z", "2026-01-01T02:00:00Z", "b", VERSION, VALUE, 1_767_232_800_000
)
START_MS, EXPIRES_MS = 1_767_225_300_000, 1_767_229_200_000
FOLDER = Location.parse("abfss://data@lakeacct.dfs.core.windows.net/db/t")


def answer(**changed: str) -> str:
    fields = {
        "SignedOid": "oid",
        "SignedTid": "tid",
        "SignedStart": KEY.start,
        "SignedExpiry": KEY.expiry,
        "SignedService": "b",
        "SignedVersion": VERSION,
        "Value": VALUE,
        **changed,
    }
    inside = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
    return f'<?xml version="1.0" encoding="utf-8"?><UserDelegationKey>{inside}</UserDelegationKey>'


class OwnToken:
    def __init__(self, failure: StoreDenied | StoreUnavailable | None = None) -> None:
        self.failure = failure

    async def current(self) -> BearerToken:
        if self.failure is not None:
            raise self.failure
        return BearerToken("entra", 1_767_300_000_000)


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


def issuer(
    outbound: WireOutbound,
    cloud: FakeCloud,
    runtime: FakeRuntime,
    *,
    tokens: OwnToken | None = None,
    consent: bool = False,
) -> AzureIssuer:
    reached = AzureConfig(account="lakeacct", endpoint_url=cloud.uri) if cloud.uri else AzureConfig()
    own = tokens or OwnToken()
    config = AzureConfig(endpoint_url=reached.endpoint_url)
    return AzureIssuer(outbound, own, runtime.now_ms, config=config, container_scope=consent)


def scope(*paths: str, write: bool = False) -> Scope:
    return Scope.of(
        [Location.parse(f"abfss://data@lakeacct.dfs.core.windows.net/{path}") for path in paths], write=write
    )


@pytest.mark.parametrize("permissions", ["rl", "racwdl"])
@pytest.mark.parametrize("directory", [("db", "t"), ("db", "a b", "é"), ()])
def test_what_is_signed_is_what_the_sdk_signs(permissions: str, directory: tuple[str, ...]) -> None:
    theirs: list[str] = []
    key = UserDelegationKey()  # type: ignore[no-untyped-call]  # the SDK's are typed in part
    key.signed_oid, key.signed_tid, key.signed_start, key.signed_expiry = "oid", "tid", KEY.start, KEY.expiry
    key.signed_service, key.signed_version, key.value = "b", VERSION, VALUE
    common: dict[str, Any] = {
        "user_delegation_key": key,
        "permission": permissions,
        "start": "2025-12-31T23:55:00Z",
        "expiry": "2026-01-01T01:00:00Z",
        "protocol": "https",
        "sts_hook": theirs.append,
    }
    if directory:
        sdk = generate_blob_sas("lakeacct", "data", "/".join(directory), is_directory=True, **common)
    else:
        sdk = generate_container_sas("lakeacct", "data", **common)
    ours = user_delegation_sas(KEY, "lakeacct", "data", directory, permissions, START_MS, EXPIRES_MS)

    told, sdks = ({name: values[0] for name, values in parse_qs(query).items()} for query in (ours, sdk))
    assert set(told) == set(sdks)
    differing = {name for name in told if told[name] != sdks[name]}
    assert differing == {"sv", "sig"}  # the SDK's newest version signs four more lines, which are empty here
    resource = "/".join(["/blob/lakeacct/data", *directory])
    lines = theirs[0].split("\n")
    assert lines[13:15] == ["", ""]
    assert lines[21:23] == ["", ""]
    assert lines[17] == sdks["sv"]
    lines[17] = VERSION
    assert string_to_sign(told, resource) == "\n".join(lines[:13] + lines[15:21] + lines[23:])


def test_the_string_to_sign_is_the_one_of_the_documents() -> None:
    fields = {"sp": "rl", "st": "S", "se": "E", "skoid": "o", "sktid": "t", "skt": "ks", "ske": "ke", "sks": "b"}
    text_signed = string_to_sign({**fields, "skv": VERSION, "spr": "https", "sv": VERSION, "sr": "d"}, "/blob/a/c/d")

    assert text_signed.split("\n") == [
        *("rl", "S", "E", "/blob/a/c/d", "o", "t", "ks", "ke", "b", VERSION),
        *("", "", "", "", "https", VERSION, "d", "", "", "", "", "", "", ""),
    ]


async def test_each_folder_of_a_hierarchical_account_gets_a_signature_of_its_own(runtime: FakeRuntime) -> None:
    async with fake_cloud(text(answer(), kind="application/xml")) as cloud, connections(runtime) as outbound:
        config = AzureStorage("tid", hierarchical=True)
        issued = await issuer(outbound, cloud, runtime).issue(
            config, scope("db/t", "other/deep/t", write=True), "alice"
        )

    tokens = [parse_qs(credential.config["adls.sas-token.lakeacct.dfs.core.windows.net"]) for credential in issued]
    assert [token["sr"] + token["sdd"] + token["sp"] for token in tokens] == [
        ["d", "2", "racwdl"],
        ["d", "3", "racwdl"],
    ]
    assert [credential.prefix for credential in issued] == [
        location.uri for location in scope("db/t", "other/deep/t").locations
    ]
    first = issued[0]
    token = first.config["adls.sas-token"]
    assert first.config == {
        "adls.sas-token.lakeacct.dfs.core.windows.net": token,
        "adls.sas-token.lakeacct": token,
        "adls.sas-token": token,
        "adls.account-name": "lakeacct",
        "adls.sas-token-expires-at-ms.lakeacct.dfs.core.windows.net": str(first.expires_ms),
    }
    assert first.expires_ms == runtime.ms + 3_600_000
    assert token not in repr(first)
    assert len(cloud.asked) == 1


async def test_the_key_is_asked_for_as_the_documents_say_and_remembered(runtime: FakeRuntime) -> None:
    async with fake_cloud(text(answer(), kind="application/xml")) as cloud, connections(runtime) as outbound:
        one = issuer(outbound, cloud, runtime)
        for _ in range(2):
            await one.issue(AzureStorage("tid", hierarchical=True), scope("t"), "alice")
        runtime.ms += 3_600_001
        await one.issue(AzureStorage("tid", hierarchical=True), scope("t"), "alice")

    asked = cloud.asked[0]
    assert (asked.method, asked.path) == ("POST", "/?restype=service&comp=userdelegationkey")
    assert asked.headers["authorization"] == "Bearer entra"
    assert asked.headers["x-ms-version"] == VERSION
    assert asked.body.decode() == (
        '<?xml version="1.0" encoding="utf-8"?><KeyInfo><Start>2025-12-31T23:55:00Z</Start>'
        "<Expiry>2026-01-01T02:00:00Z</Expiry></KeyInfo>"
    )
    assert len(cloud.asked) == 2


async def test_a_signature_never_outlives_its_key(runtime: FakeRuntime) -> None:
    short = answer(SignedExpiry="2026-01-01T00:10:00Z")
    async with fake_cloud(text(short, kind="application/xml")) as cloud, connections(runtime) as outbound:
        (credential,) = await issuer(outbound, cloud, runtime).issue(
            AzureStorage("tid", hierarchical=True), scope("t"), "alice"
        )

    assert credential.expires_ms == runtime.ms + 600_000


async def test_a_flat_account_gets_none_unless_the_operator_agreed_to_whole_containers(runtime: FakeRuntime) -> None:
    async with fake_cloud(text(answer(), kind="application/xml")) as cloud, connections(runtime) as outbound:
        assert await issuer(outbound, cloud, runtime).issue(AzureStorage("tid"), scope("t"), "alice") == ()
        assert cloud.asked == []
        (wide,) = await issuer(outbound, cloud, runtime, consent=True).issue(AzureStorage("tid"), scope("t"), "alice")

    assert parse_qs(wide.config["adls.sas-token"])["sr"] == ["c"]
    assert "sdd" not in parse_qs(wide.config["adls.sas-token"])


async def test_a_location_that_names_no_account_of_azure_gets_none(runtime: FakeRuntime) -> None:
    places = [
        "abfss://data@evil.example.com/t",
        "abfss://data@lakeacct.dfs.core.windows.net.example.com/t",
        "abfss://data/t",
        "s3://data/t",
    ]
    async with connections(runtime) as outbound:
        nowhere = issuer(outbound, FakeCloud([]), runtime)
        elsewhere = Scope.of([Location.parse(place) for place in places], write=False)
        assert await nowhere.issue(AzureStorage("tid", hierarchical=True), elsewhere, "alice") == ()


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ("<Error/>", 403, "lakeacct: status 403 AuthorizationFailure"),
        ("", 200, "something else"),
        (answer(Value=""), 200, "something else"),
        (answer(SignedExpiry="soon"), 200, "expires"),
        (answer(SignedTid="another"), 200, "another tenant than tid"),
        ("<!DOCTYPE x>" + answer(), 200, "something else"),
    ],
)
async def test_a_refusal_is_told_with_its_reason(runtime: FakeRuntime, body: str, status: int, told: str) -> None:
    refusal = text(body, status, "application/xml", **{"x-ms-error-code": "AuthorizationFailure"})
    async with fake_cloud(refusal) as cloud, connections(runtime) as outbound:
        with pytest.raises(CredentialsRefused, match=told) as caught:
            await issuer(outbound, cloud, runtime).issue(AzureStorage("tid", hierarchical=True), scope("t"), "alice")

    assert VALUE not in caught.value.message


@pytest.mark.parametrize(
    ("failure", "told"), [(StoreDenied("none found"), CredentialsRefused), (StoreUnavailable("slow"), Unavailable)]
)
async def test_without_a_token_of_its_own_the_catalog_asks_nobody(
    runtime: FakeRuntime, failure: StoreDenied | StoreUnavailable, told: type[Exception]
) -> None:
    async with fake_cloud(text(answer())) as cloud, connections(runtime) as outbound:
        one = issuer(outbound, cloud, runtime, tokens=OwnToken(failure))
        with pytest.raises(told):
            await one.issue(AzureStorage("tid", hierarchical=True), scope("t"), "alice")

    assert cloud.asked == []
