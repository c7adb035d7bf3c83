"""The façade: which cloud is asked, what is remembered, what is told and what is never written."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from arco_catalog.iceberg.errors import Forbidden, Unavailable
from arco_catalog.state.locations import Location
from arco_catalog.vending.errors import CredentialsRefused
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.service import Issuers, Outcome, Vending, signing_properties
from arco_catalog.vending.sign_request import SignRequest
from arco_catalog.vending.storage_config import AwsStorage, AzureStorage, FileStorage, GcpStorage, StorageConfig
from arco_catalog.vending.storage_policy import StoragePolicy
from arco_catalog.vending.sts import StsIssuer
from storage_backends.base import StoreDenied, StoreUnavailable
from tests.support.fake_runtime import FakeRuntime
from tests.vending import test_azure
from tests.vending.aws_policies import allows
from tests.vending.fake_clouds import FakeCloud, OwnKeys, connections, fake_cloud, text
from tests.vending.test_sts import ROLE, answer, refusal

OWN = ["http://127.0.0.1:9000"]
READ = Scope.of([Location.parse("s3://lake/t")], write=False)
WRITE = Scope.of([Location.parse("s3://lake/t")], write=True)


class Fixture:
    """A façade over a fake STS, and what it counted."""

    def __init__(self, vending: Vending, sts: FakeCloud, outcomes: list[Outcome], runtime: FakeRuntime) -> None:
        self.vending, self.sts, self.outcomes, self.runtime = vending, sts, outcomes, runtime
        self.config = AwsStorage(role_arn=ROLE, sts_endpoint=sts.uri, endpoint="http://127.0.0.1:9000", path_style=True)


@pytest.fixture
async def fixture() -> AsyncIterator[Fixture]:
    runtime, outcomes = FakeRuntime(), list[Outcome]()
    async with fake_cloud(text(answer())) as sts, connections(runtime) as outbound:
        issuers = Issuers(s3=StsIssuer(outbound, OwnKeys(), runtime.now_ms), signer=OwnKeys())
        policy = StoragePolicy.of([sts.uri, *OWN])
        vending = Vending(issuers, runtime.now_ms, outcomes.append, outbound, policy=policy)
        yield Fixture(vending, sts, outcomes, runtime)


async def test_what_may_be_shared_is_and_nothing_else(fixture: Fixture) -> None:
    for scope, entity, principal in [(READ, "e1", "alice"), (READ, "e1", "alice"), (WRITE, "e1", "alice")]:
        await fixture.vending.credentials(fixture.config, scope, entity, principal)
    await fixture.vending.credentials(fixture.config, READ, "e2", "alice")
    await fixture.vending.credentials(fixture.config, READ, "e1", "bob")

    assert len(fixture.sts.asked) == 4
    assert [asked.form["RoleSessionName"] for asked in fixture.sts.asked] == ["arco-alice"] * 3 + ["arco-bob"]
    assert fixture.outcomes == [Outcome.ISSUED] * 4


async def test_callers_who_come_first_at_the_same_time_share_one_request_for_each_right(fixture: Fixture) -> None:
    asked = [(scope, principal) for scope in (READ, WRITE) for principal in ("alice", "bob") for _ in range(10)]
    issued = await asyncio.gather(
        *(fixture.vending.credentials(fixture.config, scope, "e", principal) for scope, principal in asked)
    )

    assert len(issued) == len(asked)
    assert len(fixture.sts.asked) == len(fixture.outcomes) == 4


async def test_each_caller_is_told_where_to_get_the_next(fixture: Fixture) -> None:
    first, second, none = [
        (await fixture.vending.credentials(fixture.config, READ, "e", "alice", endpoint))[0]
        for endpoint in ("v1/a/credentials", "v1/b/credentials", None)
    ]

    name = "client.refresh-credentials-endpoint"
    assert (first.config[name], second.config[name]) == ("v1/a/credentials", "v1/b/credentials")
    assert name not in none.config
    assert none.json == {"prefix": "s3://lake/t", "config": dict(none.config)}


@pytest.mark.parametrize("config", [FileStorage(), GcpStorage(), AzureStorage("t"), AwsStorage()])
async def test_where_vending_is_impossible_there_are_no_credentials_and_no_error(
    fixture: Fixture, config: StorageConfig
) -> None:
    assert await fixture.vending.credentials(config, READ, "e", "alice") == ()
    assert fixture.outcomes == [Outcome.NONE]


async def test_a_refusal_is_counted_and_logged_and_asked_again_by_the_next(
    fixture: Fixture, caplog: pytest.LogCaptureFixture
) -> None:
    fixture.sts.answers[:] = [text(refusal("AccessDenied"), 403), text(answer())]
    with caplog.at_level(logging.ERROR), pytest.raises(CredentialsRefused):
        await fixture.vending.credentials(fixture.config, READ, "e", "alice")

    assert "STS refuses to assume the role" in caplog.text
    assert len(await fixture.vending.credentials(fixture.config, READ, "e", "alice")) == 1
    assert fixture.outcomes == [Outcome.REFUSED, Outcome.ISSUED]


async def test_a_passing_failure_is_counted(fixture: Fixture) -> None:
    fixture.sts.answers[:] = [text("", 500)]
    with pytest.raises(Unavailable):
        await fixture.vending.credentials(fixture.config, READ, "e", "alice")

    assert fixture.outcomes == [Outcome.UNAVAILABLE]


async def test_no_secret_is_logged_however_much_is(fixture: Fixture, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        issued = await fixture.vending.credentials(fixture.config, READ, "e", "alice")
        signed = await fixture.vending.sign(fixture.config, READ, "e", "alice", GET)

    shown = f"{caplog.text}{issued!r}{fixture.vending!r}{signed!r}{vars(fixture.vending)['_cache']!r}"
    for secret in ("vended-token", "vended/secret", "own-secret", "own-token", signed.headers["authorization"]):
        assert secret not in shown


@pytest.mark.parametrize(
    ("hierarchical", "consent", "owned", "vended"),
    [
        (True, False, False, True),
        (False, False, True, False),
        (False, True, False, False),
        (False, True, True, True),
    ],
)
async def test_a_signature_for_a_container_is_given_only_where_the_whole_container_is_the_catalogs(
    fixture: Fixture, hierarchical: bool, consent: bool, owned: bool, vended: bool
) -> None:
    asked = list[Location]()

    def owns(folder: Location) -> bool:
        asked.append(folder)
        return owned

    key = text(test_azure.answer(), kind="application/xml")
    async with fake_cloud(key) as cloud, connections(fixture.runtime) as outbound:
        azure = test_azure.issuer(outbound, cloud, fixture.runtime, consent=consent)
        vending = Vending(Issuers(azure=azure), fixture.runtime.now_ms, fixture.outcomes.append)
        config = AzureStorage("tid", hierarchical=hierarchical)
        issued = await vending.credentials(config, test_azure.scope("t"), "e", "alice", None, owns)

    assert bool(issued) == vended
    assert asked == ([] if hierarchical else [Location("abfss", "data@lakeacct.dfs.core.windows.net", ())])


GET = SignRequest("us-east-1", "http://127.0.0.1:9000/lake/t/1", "GET", {})
PUT = SignRequest("us-east-1", "http://127.0.0.1:9000/lake/t/1", "PUT", {})


async def test_a_request_is_signed_by_keys_that_open_the_table_alone(fixture: Fixture) -> None:
    for _ in range(2):
        signed = await fixture.vending.sign(fixture.config, WRITE, "e", "alice", PUT)
        assert signed.uri == PUT.uri
        assert "Credential=ASIA1/" in signed.headers["authorization"]
        assert signed.headers["x-amz-security-token"] == "vended-token"

    (asked,) = fixture.sts.asked
    assert allows(asked.form["Policy"], "s3:PutObject", "arn:aws:s3:::lake/t/1")
    assert not allows(asked.form["Policy"], "s3:GetObject", "arn:aws:s3:::lake/other/1")


async def test_a_request_that_is_not_allowed_asks_nobody_for_keys(fixture: Fixture) -> None:
    with pytest.raises(Forbidden):
        await fixture.vending.sign(fixture.config, READ, "e", "alice", PUT)

    assert fixture.sts.asked == []


async def test_with_a_key_for_each_location_that_of_the_request_signs(fixture: Fixture) -> None:
    deep = [Location.parse(f"s3://lake/{'deep/' * 30}t{number}") for number in range(6)]
    wanted = replace(GET, uri=f"http://127.0.0.1:9000/lake/{deep[3].path}/1")
    await fixture.vending.sign(fixture.config, Scope.of(deep, write=False), "e", "alice", wanted)

    policy = fixture.sts.asked[-1].form["Policy"]
    assert [allows(policy, "s3:GetObject", f"arn:aws:s3:::lake/{place.path}/1") for place in deep] == [
        place == deep[3] for place in deep
    ]
    objects = "".join(f"<Object><Key>{place.path}/1</Key></Object>" for place in deep)
    delete = SignRequest("us-east-1", "http://127.0.0.1:9000/lake?delete", "POST", {}, f"<Delete>{objects}</Delete>")
    with pytest.raises(Forbidden, match="one location"):
        await fixture.vending.sign(fixture.config, Scope.of(deep, write=True), "e", "alice", delete)


async def test_a_request_about_a_folder_that_no_policy_names_is_signed_by_the_own_key(fixture: Fixture) -> None:
    """The credential of the scope opens the other folder alone."""
    scope = Scope.of([Location.parse("s3://lake/t"), Location.parse("s3://lake/star*")], write=False)
    named, unnamed = (replace(GET, uri=f"http://127.0.0.1:9000/lake/{folder}/1") for folder in ("t", "star%2A"))

    own = await fixture.vending.sign(fixture.config, scope, "e", "alice", unnamed)
    vended = await fixture.vending.sign(fixture.config, scope, "e", "alice", named)

    assert own.headers.get("x-amz-security-token") != "vended-token"
    assert vended.headers["x-amz-security-token"] == "vended-token"


@pytest.mark.parametrize(
    ("config", "trusted", "signed_too"),
    [
        (AwsStorage(endpoint="http://127.0.0.1:9000"), False, False),
        (AwsStorage(endpoint="http://127.0.0.1:9000"), True, True),
        (AwsStorage(region="us-east-1"), False, True),
    ],
)
async def test_the_catalogs_own_key_signs_nothing_that_a_careless_server_would_let_become_another(
    fixture: Fixture, config: AwsStorage, trusted: bool, signed_too: bool
) -> None:
    issuers = Issuers(signer=OwnKeys(), signer_of_amazon=config.is_amazon, strict_signatures=trusted)
    vending = Vending(issuers, fixture.runtime.now_ms, fixture.outcomes.append, policy=StoragePolicy.of(OWN))
    origin = config.endpoint or "https://s3.us-east-1.amazonaws.com"
    body = "<Delete><Object><Key>t/1</Key></Object></Delete>"
    get, put = (replace(request, uri=f"{origin}/lake/t/1") for request in (GET, PUT))
    delete = SignRequest("us-east-1", f"{origin}/lake?delete", "POST", {}, body)

    assert "AKOWN" in (await vending.sign(config, WRITE, "e", "alice", get)).headers["authorization"]
    for request in (put, delete):
        if signed_too:
            assert "AKOWN" in (await vending.sign(config, WRITE, "e", "alice", request)).headers["authorization"]
        else:
            with pytest.raises(Forbidden, match="not signed"):
                await vending.sign(config, WRITE, "e", "alice", request)


@pytest.mark.parametrize(
    "config", [GcpStorage(), AzureStorage("t"), FileStorage(), AwsStorage(endpoint="http://127.0.0.1:9000")]
)
async def test_requests_are_signed_for_s3_alone_and_only_with_a_key(fixture: Fixture, config: StorageConfig) -> None:
    without = Vending(Issuers(), fixture.runtime.now_ms, fixture.outcomes.append, policy=StoragePolicy.of(OWN))
    with pytest.raises(
        Forbidden, match=r"Not signed: (this catalog's storage is not S3|only one of AWS_ACCESS_KEY_ID and)"
    ):
        await without.sign(config, READ, "e", "alice", GET)


async def test_no_request_goes_to_a_region_that_is_not_known(fixture: Fixture) -> None:
    config = AwsStorage(role_arn=ROLE, region="new-test-region")

    assert await fixture.vending.credentials(config, READ, "e", "alice") == ()
    with pytest.raises(Forbidden, match="does not allow this server to use"):
        await fixture.vending.sign(config, READ, "e", "alice", GET)
    assert fixture.sts.asked == []


@pytest.mark.parametrize(
    ("failure", "told", "outcome"),
    [
        (StoreDenied("none"), CredentialsRefused, Outcome.REFUSED),
        (StoreUnavailable("slow"), Unavailable, Outcome.UNAVAILABLE),
    ],
)
async def test_a_key_that_cannot_be_had_is_told(
    fixture: Fixture,
    caplog: pytest.LogCaptureFixture,
    failure: StoreDenied | StoreUnavailable,
    told: type[Exception],
    outcome: Outcome,
) -> None:
    issuers = Issuers(signer=OwnKeys(failure))
    vending = Vending(issuers, fixture.runtime.now_ms, fixture.outcomes.append, policy=StoragePolicy.of(OWN))
    with pytest.raises(told):
        await vending.sign(AwsStorage(endpoint="http://127.0.0.1:9000"), READ, "e", "alice", GET)
    assert fixture.outcomes[-1:] == [outcome]
    assert ("no signature, and an operator must act" in caplog.text) is (outcome is Outcome.REFUSED)


def test_clients_of_all_dialects_are_told_where_to_have_requests_signed() -> None:
    told = signing_properties("v1/wh/namespaces/db/tables/t/sign")

    assert told["s3.remote-signing-enabled"] == "true"
    assert told["s3.signer"] == "S3V4RestSigner"
    for dialect in ("s3.signer", "signer"):
        assert f"{dialect}.uri" not in told
        assert told[f"{dialect}.endpoint"] == "v1/wh/namespaces/db/tables/t/sign"
