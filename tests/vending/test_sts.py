"""AssumeRole as STS takes and answers it."""

import json
from datetime import UTC, datetime

import pytest
from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials as BotocoreCredentials  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.state.locations import Location
from arco_catalog.vending.errors import CredentialsRefused
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.storage_config import AwsStorage
from arco_catalog.vending.sts import StsIssuer, read_answer, session_name, sts_url
from storage_backends.base import StoreDenied, StoreUnavailable
from storage_backends.s3.signature import signing_stamp
from storage_backends.wire.http1 import Response
from tests.support.fake_runtime import FakeRuntime
from tests.vending.aws_policies import allows
from tests.vending.fake_clouds import OwnKeys, connections, fake_cloud, text

ROLE = "arn:aws:iam::123456789012:role/lake"
NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"


def answer(*, token: str = "vended-token", expiration: str = "2026-01-01T01:00:00Z", extra: str = "") -> str:
    return f"""<AssumeRoleResponse xmlns="{NAMESPACE}"><AssumeRoleResult><AssumedRoleUser><Arn>a</Arn></AssumedRoleUser>
    <Credentials><AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>vended/secret+</SecretAccessKey>
    <SessionToken>{token}</SessionToken><Expiration>{expiration}</Expiration>{extra}</Credentials></AssumeRoleResult>
    </AssumeRoleResponse>"""


def refusal(code: str, status: int = 403, message: str = "no") -> str:
    return (
        f'<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message>'
        f"</Error><RequestId>1</RequestId></ErrorResponse>"
    )


def scope(*paths: str, write: bool = False) -> Scope:
    return Scope.of([Location.parse(f"s3://lake/{path}") for path in paths], write=write)


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


def config(uri: str) -> AwsStorage:
    return AwsStorage(role_arn=ROLE, region="eu-west-1", sts_endpoint=uri, external_id="handshake")


async def test_a_role_is_assumed_with_the_policy_of_the_scope(runtime: FakeRuntime) -> None:
    async with fake_cloud(text(answer())) as sts, connections(runtime) as outbound:
        issuer = StsIssuer(outbound, OwnKeys(), runtime.now_ms)
        (credential,) = await issuer.issue(config(sts.uri), scope("db/t"), "alice")

    form = sts.asked[0].form
    policy = form.pop("Policy")
    assert form == {
        "Action": "AssumeRole",
        "Version": "2011-06-15",
        "RoleArn": ROLE,
        "RoleSessionName": "arco-alice",
        "DurationSeconds": "3600",
        "ExternalId": "handshake",
    }
    assert allows(policy, "s3:GetObject", "arn:aws:s3:::lake/db/t/1.parquet")
    assert not allows(policy, "s3:GetObject", "arn:aws:s3:::lake/db/t2/1.parquet")
    assert credential.prefix == "s3://lake/db/t"
    assert credential.expires_ms == int(datetime(2026, 1, 1, 1, tzinfo=UTC).timestamp() * 1_000)
    assert credential.config == {
        "client.region": "eu-west-1",
        "s3.region": "eu-west-1",
        "s3.access-key-id": "ASIA1",
        "s3.secret-access-key": "vended/secret+",
        "s3.session-token": "vended-token",
        "s3.session-token-expires-at-ms": str(credential.expires_ms),
    }


@pytest.mark.parametrize(("lifetime_s", "asked_s", "told_s"), [(60, 900, 60), (900, 900, 900), (7_200, 7_200, 3_600)])
async def test_clients_use_keys_no_longer_than_the_lifetime_that_is_set_nor_than_sts_says(
    runtime: FakeRuntime, lifetime_s: int, asked_s: int, told_s: int
) -> None:
    async with fake_cloud(text(answer())) as sts, connections(runtime) as outbound:
        issuer = StsIssuer(outbound, OwnKeys(), runtime.now_ms, lifetime_s)
        (credential,) = await issuer.issue(config(sts.uri), scope("db/t"), "alice")

    assert sts.asked[0].form["DurationSeconds"] == str(asked_s)
    assert credential.expires_ms == runtime.ms + told_s * 1_000
    assert credential.config["s3.session-token-expires-at-ms"] == str(credential.expires_ms)


async def test_the_signature_is_the_one_that_botocore_makes(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_cloud(text(answer())) as sts, connections(runtime) as outbound:
        await StsIssuer(outbound, OwnKeys(), runtime.now_ms).issue(config(sts.uri), scope("db/t"), "alice")

    asked = sts.asked[0]
    stamp = signing_stamp(runtime.ms)
    names = asked.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    request = AWSRequest("POST", f"{sts.uri}/", {name: asked.headers[name] for name in names}, asked.body)
    request.context["timestamp"] = stamp
    signer = SigV4Auth(BotocoreCredentials("AKOWN", "own-secret"), "sts", "eu-west-1")
    monkeypatch.setattr(signer, "payload", lambda _: asked.headers["x-amz-content-sha256"])
    signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    assert {"host", "content-type", "x-amz-date", "x-amz-security-token"} <= {*names}
    assert asked.headers["x-amz-date"] == stamp
    assert asked.headers["authorization"].endswith(f"Signature={signature}")


async def test_what_does_not_fit_one_policy_is_asked_for_one_by_one(runtime: FakeRuntime) -> None:
    deep = [f"{'deep/' * 30}t{number}" for number in range(6)]
    async with fake_cloud(text(answer())) as sts, connections(runtime) as outbound:
        issued = await StsIssuer(outbound, OwnKeys(), runtime.now_ms).issue(config(sts.uri), scope(*deep), "alice")

    assert [credential.prefix for credential in issued] == [f"s3://lake/{path}" for path in deep]
    for path, asked in zip(deep, sts.asked, strict=True):
        opened = [allows(asked.form["Policy"], "s3:GetObject", f"arn:aws:s3:::lake/{other}/1") for other in deep]
        assert opened == [other == path for other in deep]


async def test_what_sts_packs_into_too_much_is_asked_for_one_by_one(runtime: FakeRuntime) -> None:
    answers = text(refusal("PackedPolicyTooLarge"), 400), text(answer())
    async with fake_cloud(*answers) as sts, connections(runtime) as outbound:
        issuer = StsIssuer(outbound, OwnKeys(), runtime.now_ms)
        issued = await issuer.issue(config(sts.uri), scope("a", "b"), "alice")

    assert [credential.prefix for credential in issued] == ["s3://lake/a", "s3://lake/b"]
    assert len(sts.asked) == 3


@pytest.mark.parametrize("without", [{"role_arn": None}, {"sts_unavailable": True}])
async def test_without_a_role_or_an_sts_there_are_no_credentials_and_nobody_is_asked(
    runtime: FakeRuntime, without: dict[str, object]
) -> None:
    async with fake_cloud(text(answer())) as sts, connections(runtime) as outbound:
        configured = AwsStorage(**{"role_arn": ROLE, "sts_endpoint": sts.uri, **without})  # type: ignore[arg-type]
        assert await StsIssuer(outbound, OwnKeys(), runtime.now_ms).issue(configured, scope("t"), "alice") == ()

    assert sts.asked == []


async def test_a_refusal_is_told_with_its_reason(runtime: FakeRuntime) -> None:
    denied = text(refusal("AccessDenied", message="not authorized"), 403)
    async with fake_cloud(denied) as sts, connections(runtime) as outbound:
        with pytest.raises(CredentialsRefused, match=f"{ROLE}: status 403 AccessDenied: not authorized") as caught:
            await StsIssuer(outbound, OwnKeys(), runtime.now_ms).issue(config(sts.uri), scope("t"), "alice")

    assert caught.value.code == "AccessDenied"
    assert len(sts.asked) == 1


async def test_a_passing_failure_is_asked_again_and_then_told_as_one(runtime: FakeRuntime) -> None:
    broken = text("<html/>", 503)
    async with fake_cloud(broken, text(answer())) as sts, connections(runtime) as outbound:
        issuer = StsIssuer(outbound, OwnKeys(), runtime.now_ms)
        assert len(await issuer.issue(config(sts.uri), scope("t"), "alice")) == 1
    async with fake_cloud(broken) as sts, connections(runtime) as outbound:
        with pytest.raises(Unavailable, match="status 503"):
            await StsIssuer(outbound, OwnKeys(), runtime.now_ms).issue(config(sts.uri), scope("t"), "alice")
    with pytest.raises(Unavailable, match="Throttling"):
        read_answer(Response(400, {}, refusal("Throttling").encode()), ROLE)


async def test_a_server_that_is_not_there_is_a_passing_failure(runtime: FakeRuntime) -> None:
    async with fake_cloud(text(answer())) as sts:
        gone = config(sts.uri)
    async with connections(runtime) as outbound:
        with pytest.raises(Unavailable, match="does not answer"):
            await StsIssuer(outbound, OwnKeys(), runtime.now_ms).issue(gone, scope("t"), "alice")


@pytest.mark.parametrize(
    ("failure", "told"), [(StoreDenied("none found"), CredentialsRefused), (StoreUnavailable("slow"), Unavailable)]
)
async def test_without_keys_of_its_own_the_catalog_asks_nobody(
    runtime: FakeRuntime, failure: StoreDenied | StoreUnavailable, told: type[Exception]
) -> None:
    async with fake_cloud(text(answer())) as sts, connections(runtime) as outbound:
        with pytest.raises(told):
            await StsIssuer(outbound, OwnKeys(failure), runtime.now_ms).issue(config(sts.uri), scope("t"), "alice")

    assert sts.asked == []


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not XML",
        "<AssumeRoleResponse/>",
        answer(token=""),
        answer(token="two words"),
        answer(token="line\nbreak"),
        answer(expiration="soon"),
        answer(extra="<SessionToken>another</SessionToken>"),
        answer().replace("AssumeRoleResponse", "GetSessionTokenResponse"),
        '<!DOCTYPE x [<!ENTITY t "vended-token">]>' + answer(token="&t;"),
        '<?xml version="1.0" encoding="nonsense"?>' + answer(),
    ],
)
def test_an_answer_that_is_none_is_refused_and_not_quoted(body: str) -> None:
    with pytest.raises(CredentialsRefused) as caught:
        read_answer(Response(200, {}, body.encode()), ROLE)

    assert caught.value.message == "STS answered AssumeRole with something else than credentials"


@given(st.text(max_size=100))
def test_a_session_name_is_always_one(principal: str) -> None:
    name = session_name(principal)

    assert 2 <= len(name) <= 64
    assert all(character.isascii() and (character.isalnum() or character in "_+=,.@-") for character in name)


@given(st.lists(st.text(st.sampled_from("ab-/é"), max_size=70), min_size=2, max_size=2, unique=True))
def test_two_principals_have_two_session_names(principals: list[str]) -> None:
    one, other = principals
    assert session_name(one) != session_name(other)


@given(st.text(st.sampled_from("ab-/é "), max_size=70))
def test_nobody_is_called_as_the_session_of_another(principal: str) -> None:
    name = session_name(principal)

    assert principal == name.removeprefix("arco-") or session_name(name.removeprefix("arco-")) != name


@pytest.mark.parametrize(
    ("configured", "url"),
    [
        (AwsStorage(region="eu-west-1"), "https://sts.eu-west-1.amazonaws.com/"),
        (AwsStorage(region="cn-north-1"), "https://sts.cn-north-1.amazonaws.com.cn/"),
        (AwsStorage(), "https://sts.us-east-1.amazonaws.com/"),
        (AwsStorage(endpoint="http://minio:9000"), "http://minio:9000/"),
        (AwsStorage(endpoint="http://minio:9000", endpoint_internal="http://inside:9000"), "http://inside:9000/"),
        (AwsStorage(endpoint="http://minio:9000", sts_endpoint="http://sts:1/path"), "http://sts:1/path"),
        (
            AwsStorage(region="eu-west-1", endpoint="https://b.vpce-1.s3.eu-west-1.vpce.amazonaws.com"),
            "https://sts.eu-west-1.amazonaws.com/",
        ),
    ],
)
def test_sts_is_where_the_configuration_says_or_where_the_region_is(configured: AwsStorage, url: str) -> None:
    assert sts_url(configured) == url


async def test_neither_text_nor_trace_shows_a_secret(runtime: FakeRuntime) -> None:
    async with fake_cloud(text(answer())) as sts, connections(runtime) as outbound:
        issued = await StsIssuer(outbound, OwnKeys(), runtime.now_ms).issue(config(sts.uri), scope("t"), "alice")

    shown = repr(issued) + str(issued[0]) + repr(read_answer(Response(200, {}, answer().encode()), ROLE))
    assert "vended-token" not in shown
    assert "vended/secret" not in shown


async def test_the_policy_is_sent_in_the_characters_that_sts_takes(runtime: FakeRuntime) -> None:
    async with fake_cloud(text(answer())) as sts, connections(runtime) as outbound:
        await StsIssuer(outbound, OwnKeys(), runtime.now_ms).issue(config(sts.uri), scope("日本"), "alice")

    assert sts.asked[0].form["Policy"].isascii()
    assert json.loads(sts.asked[0].form["Policy"])["Statement"][0]["Resource"] == ["arn:aws:s3:::lake/日本/*"]
