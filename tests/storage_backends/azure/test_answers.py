"""What Azure's answers mean, on a server that gives them one by one; and how often a request goes over the wire, over
our own connections and with the SDK."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from storage_backends import (
    ABSENT,
    ANY,
    Applied,
    Found,
    Matches,
    Missing,
    PreconditionFailed,
    StoreDenied,
    StoreError,
    StoreUnavailable,
    Unchanged,
    Unknown,
    Version,
)
from storage_backends.azure.config import AzureConfig, ClientKind, DefaultChain, SasToken, SharedKey
from storage_backends.azure.store import AzureStore
from storage_backends.backoff import ATTEMPTS
from storage_backends.wire.client import Pauses
from tests.storage_backends.answers import AnswersContract, OpenStore, Play, PlayedScript, Sleep, playing, varied
from tests.storage_backends.azure.scripted_azure import ScriptedAzure, refusal, scripted_azure
from tests.storage_backends.s3.scripted_s3 import DATE_MS, Drop, Reply, Serve, Step

STALE = Matches(Version('"0x8D0"'))
AGAIN = [refusal(503, "ServerBusy"), refusal(429, "TooManyRequests"), Reply(429)]
FAILURES = [
    refusal(500, "InternalError"),
    refusal(500, "OperationTimedOut"),
    Reply(502),
    Reply(503),
    Reply(504),
]
DENIALS = [
    refusal(403, "AuthorizationPermissionMismatch"),
    refusal(403, "InsufficientAccountPermissions"),
    refusal(403, "UnauthorizedBlobOverwrite"),
    refusal(401, "InvalidAuthenticationInfo"),
    Reply(403),
]


@pytest.fixture(params=ClientKind)
def play(request: pytest.FixtureRequest) -> Play:
    return player(request.param)


@pytest.fixture
def play_wire() -> Play:
    return player(ClientKind.WIRE)


def player(client: ClientKind) -> Play:
    @asynccontextmanager
    async def run(*script: Step) -> AsyncIterator[PlayedScript]:
        async with scripted_azure(script) as azure, playing(azure, opener(azure, client)) as played:
            yield played

    return run


def opener(azure: ScriptedAzure, client: ClientKind) -> OpenStore:
    config = AzureConfig("account", SharedKey("c2VjcmV0"), azure.endpoint, client)

    def open_store(sleep: Sleep, **settings: Any) -> AzureStore:
        changed = replace(config, **settings)
        return AzureStore("container", "some/prefix", config=changed, pauses=Pauses(sleep, lambda: 1.0))

    return open_store


class TestAnswers(AnswersContract):
    """What is the same for all vendors."""

    busy, throttled = refusal(503, "ServerBusy"), "ServerBusy"
    unversioned = Reply(201)
    again = varied(AGAIN)
    failure = varied(FAILURES)
    denial = varied(DENIALS)
    nowhere = varied([refusal(404, "ContainerNotFound"), refusal(409, "ContainerBeingDeleted")])
    refused = varied(
        [
            (refusal(409, "BlobAlreadyExists"), ABSENT),
            (refusal(412, "ConditionNotMet"), ABSENT),
            (refusal(412, "ConditionNotMet"), STALE),
            (refusal(412, "TargetConditionNotMet"), STALE),
            (refusal(404, "BlobNotFound"), STALE),
        ]
    )


async def test_a_put_is_one_plain_request(play: Play) -> None:
    async with play() as played:
        outcome = await played.store.put("a key/é", b"body", ABSENT)

        [request] = played.server.requests
        assert isinstance(outcome, Applied)
        assert request.rel_url.raw_path == "/container/some/prefix/a%20key/%C3%A9"
        assert request.headers["If-None-Match"] == "*"
        assert request.headers["x-ms-blob-type"] == "BlockBlob"
        assert request.headers["Content-Length"] == "4"
        assert request.headers["Authorization"].startswith("SharedKey account:")
        assert played.server.bodies == [b"body"]


async def test_versions_go_over_the_wire_as_they_came(play: Play) -> None:
    async with play() as played:
        first = await played.store.put("key", b"one", ABSENT)
        assert isinstance(first, Applied)
        assert isinstance(await played.store.put("key", b"two", Matches(first.version)), Applied)
        assert isinstance(await played.store.get("key", first.version), Found)
        assert isinstance(await played.store.delete("key", STALE), PreconditionFailed)

        sent = [
            (request.headers.get("If-Match"), request.headers.get("If-None-Match"))
            for request in played.server.requests
        ]
        assert sent == [(None, "*"), (first.version, None), (None, first.version), (STALE.version, None)]


async def test_the_stores_clock_is_the_one_reported(play: Play) -> None:
    async with play() as played:
        outcome = await played.store.put("key", b"one", ABSENT)
        assert isinstance(outcome, Applied)
        found = await played.store.get("key")

        assert isinstance(found, Found)
        assert (found.written_ms, found.now_ms) == (DATE_MS - 60_000, DATE_MS)
        assert await played.store.get("key", outcome.version) == Unchanged(DATE_MS)
        assert await played.store.get("other") == Missing(DATE_MS)
        assert outcome.now_ms == DATE_MS


@pytest.mark.parametrize(
    "reply",
    [
        refusal(412, "LeaseIdMissing"),
        refusal(412, "LeaseLost"),
        Reply(412),
        refusal(409, "BlobImmutableDueToPolicy"),
        refusal(409, "SnapshotsPresent"),
        Reply(409),
        refusal(400, "InvalidHeaderValue"),
        refusal(404, "BlobNotFound"),
        refusal(501, "NotImplemented"),
        Reply(404),
    ],
)
async def test_what_is_no_condition_of_ours_is_an_error_and_nothing_was_applied(play: Play, reply: Reply) -> None:
    async with play(reply) as played:
        with pytest.raises(StoreError, match=str(reply.status)) as raised:
            await played.store.put("key", b"body", ABSENT)
        assert not isinstance(raised.value, StoreUnavailable | StoreDenied)
        assert played.wire == ["PUT"]


async def test_a_deletion_of_what_is_missing_is_judged_by_its_condition(play: Play) -> None:
    async with play(*[refusal(404, "BlobNotFound")] * 2, refusal(409, "SnapshotsPresent")) as played:
        assert isinstance(await played.store.delete("key", STALE), PreconditionFailed)
        assert isinstance(await played.store.delete("key"), Applied)
        with pytest.raises(StoreError, match="SnapshotsPresent"):
            await played.store.delete("key")


@pytest.mark.parametrize("header", ["x-ms-resource-type: directory", "x-ms-meta-hdi_isfolder: true"])
async def test_a_directory_is_no_object(play: Play, header: str) -> None:
    name, _, value = header.partition(": ")
    reply = Reply(200, headers={"ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 11:59:00 GMT", name: value})
    async with play(reply) as played:
        assert isinstance(await played.store.get("folder"), Missing)


async def test_a_blob_of_content_type_json_is_read_as_bytes(play: Play) -> None:
    headers = {"ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 11:59:00 GMT"}
    async with play(Reply(200, text="{not xml", headers=headers)) as played:
        found = await played.store.get("key")
        assert isinstance(found, Found)
        assert found.body == b"{not xml"


SKEWED = refusal(403, "AuthenticationFailed", Date="Fri, 01 Jan 2038 00:00:00 GMT")


async def test_a_request_signed_by_a_wrong_clock_is_signed_again_by_the_stores(play_wire: Play) -> None:
    async with play_wire(SKEWED) as played:
        assert isinstance(await played.store.put("key", b"body", ABSENT), Applied)
        assert isinstance(await played.store.get("key"), Found)

        stamps = [request.headers["x-ms-date"][:16] for request in played.server.requests]
        assert played.wire == ["PUT", "PUT", "GET"]
        assert stamps[0] != "Fri, 01 Jan 2038"
        assert stamps[1:] == ["Fri, 01 Jan 2038"] * 2
        assert played.pauses == []


async def test_a_denial_after_the_clock_was_set_right_is_not_sent_again(play_wire: Play) -> None:
    async with play_wire(SKEWED) as played:
        await played.store.get("key")
        played.server.script.append(SKEWED)
        with pytest.raises(StoreDenied, match="AuthenticationFailed"):
            await played.store.get("other")
        assert played.wire == ["GET"] * 3


async def test_an_unusable_clock_is_a_denial(play: Play) -> None:
    async with play(SKEWED, SKEWED) as played:
        with pytest.raises(StoreDenied, match="AuthenticationFailed"):
            await played.store.put("key", b"body", ABSENT)
        assert played.wire == ["PUT", "PUT"]


async def test_a_version_that_would_be_a_header_of_its_own_is_not_sent(play: Play) -> None:
    async with play() as played:
        with pytest.raises(StoreError, match="printable ASCII"):
            await played.store.put("key", b"", Matches(Version('"0"\r\nx-ms-meta-a: b')))
        assert played.wire == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<not xml",
        "<EnumerationResults><Blobs/></EnumerationResults>",
        "<EnumerationResults><NextMarker/></EnumerationResults>",
        "<Error><Code>InternalError</Code></Error>",
        "<EnumerationResults><Blobs><Blob><Name>k</Name></Blob></Blobs><NextMarker/></EnumerationResults>",
    ],
)
async def test_what_is_no_whole_listing_is_no_listing(play_wire: Play, text: str) -> None:
    async with play_wire(*[Reply(200, text=text)] * ATTEMPTS) as played:
        with pytest.raises(StoreUnavailable, match="cannot be parsed"):
            await played.store.list("")


def page(names: list[str], marker: str = "", extra: str = "") -> Reply:
    """A page of a listing, as Azure writes it: ETags without quotes."""
    blobs = "".join(
        f"<Blob>{name}<Properties><Last-Modified>Sat, 21 Nov 2026 12:00:00 GMT</Last-Modified><Etag>0x8D1</Etag>"
        f"<Content-Length>1</Content-Length>{extra}</Properties></Blob>"
        for name in names
    )
    head = '\ufeff<?xml version="1.0" encoding="utf-8"?>'
    body = f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
    return Reply(200, text=head + body)


async def test_a_listing_has_keys_and_the_versions_that_headers_have(play: Play) -> None:
    names = ["<Name>some/prefix/a&amp;b</Name>", '<Name Encoded="true">some/prefix/%EF%BF%BE%2B</Name>']
    odd = ["<Name>some/prefix/folder/</Name>", "<Name>some/prefix/a//b</Name>"]
    async with play(page([*names, *odd], "on+/="), page([])) as played:
        first = await played.store.list("x y")
        second = await played.store.list("x y", first.after)

        assert [entry.key for entry in first.entries] == ["a&b", "\ufffe+"]
        assert first.others == ("folder/", "a//b")
        assert {(entry.version, entry.size, entry.written_ms) for entry in first.entries} == {('"0x8D1"', 1, DATE_MS)}
        assert (second.entries, second.after) == ((), None)
        query = {"restype": "container", "comp": "list", "maxresults": "1000", "prefix": "some/prefix/x y"}
        queries = [dict(request.query) for request in played.server.requests]
        assert queries == [query, {**query, "marker": "on+/="}]


async def test_directories_are_not_listed(play: Play) -> None:
    directory = "<ResourceType>directory</ResourceType>"
    async with play(page(["<Name>some/prefix/folder</Name>"], extra=directory)) as played:
        assert (await played.store.list("")).entries == ()


async def test_a_shared_access_signature_is_sent_unchanged_and_never_printed() -> None:
    async with scripted_azure([]) as azure:
        for client in ClientKind:
            azure.script = [Serve(), refusal(403, "AuthorizationFailure"), Drop(applied=False)]
            token = SasToken("sv=2023-11-03&sr=c&sp=rcwdl&sig=se%2Bcret%3D")
            store = AzureStore("container", config=AzureConfig("account", token, azure.endpoint, client))
            outcome = await store.put(f"key of {client}", b"", ABSENT)
            with pytest.raises(StoreDenied) as raised:
                await store.get("key")
            lost = await store.put("key", b"", ANY)
            await store.close()

            assert isinstance(outcome, Applied)
            assert "sig=se%2Bcret%3D" in azure.requests[-3].rel_url.raw_query_string
            assert "Authorization" not in azure.requests[-3].headers
            assert isinstance(lost, Unknown)
            assert "cret" not in f"{raised.value}{lost.reason}{token}{store}"


@pytest.mark.parametrize("client", ClientKind)
@pytest.mark.parametrize(
    ("config", "report"),
    [
        (AzureConfig("account", SharedKey("not base64!"), "http://127.0.0.1:9"), "not base64"),
        (AzureConfig("account", SasToken("two words"), "http://127.0.0.1:9"), "not a query string"),
        (AzureConfig("account", DefaultChain(), "http://127.0.0.1:9"), "https only"),
        (AzureConfig("an account", SharedKey("c2VjcmV0")), "invalid account name"),
        (AzureConfig("account", SharedKey("c2VjcmV0"), "ftp://host"), "expected an endpoint"),
        (AzureConfig("account", SharedKey("c2VjcmV0"), "http://[::1"), "invalid endpoint"),
    ],
)
async def test_a_configuration_that_cannot_be_followed_is_reported(
    client: ClientKind, config: AzureConfig, report: str
) -> None:

    store = AzureStore("container", config=replace(config, client=client))
    with pytest.raises(StoreError, match=report):
        await store.get("key")
