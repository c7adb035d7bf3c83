"""Narrowed tokens of Google Cloud Storage: requests held to what google-auth sends, boundaries to what CEL means."""

import json
import re
from urllib.parse import parse_qsl, unquote

import pytest
from google.auth import downscoped
from google.auth.credentials import Credentials as GoogleCredentials
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.state.locations import Location
from arco_catalog.vending.errors import CredentialsRefused
from arco_catalog.vending.gcs import GcsIssuer
from arco_catalog.vending.gcs_boundary import MAX_RULES, access_boundary, cel_string, condition, grouped
from arco_catalog.vending.outbound import WireOutbound
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.storage_config import GcpStorage
from storage_backends.base import StoreDenied, StoreUnavailable
from storage_backends.gcs.credentials import ExpiringToken
from tests.support.fake_runtime import FakeRuntime
from tests.vending.fake_clouds import FakeCloud, connections, fake_cloud, text

EXCHANGED = '{"access_token":"narrow","issued_token_type":"urn:x","token_type":"Bearer","expires_in":1800}'
WITHOUT_LIFETIME = '{"access_token":"narrow","issued_token_type":"urn:x","token_type":"Bearer"}'
ACTED = '{"accessToken":"acted","expireTime":"2026-01-01T00:20:00Z"}'


class OwnToken:
    def __init__(self, expires_ms: int | None, failure: StoreDenied | StoreUnavailable | None = None) -> None:
        self.expires_ms = expires_ms
        self.failure = failure

    async def expiring(self) -> ExpiringToken:
        if self.failure is not None:
            raise self.failure
        return ExpiringToken("wide", self.expires_ms)


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


def location(path: str, bucket: str = "lake") -> Location:
    return Location("gs", bucket, tuple(segment for segment in path.split("/") if segment))


def issuer(outbound: WireOutbound, cloud: FakeCloud, runtime: FakeRuntime, tokens: OwnToken | None = None) -> GcsIssuer:
    own = tokens or OwnToken(runtime.ms + 3_000_000)
    return GcsIssuer(outbound, own, runtime.now_ms, sts_url=f"{cloud.uri}/v1/token", iam_url=cloud.uri)


def scope(*paths: str, write: bool = False) -> Scope:
    return Scope.of([location(path) for path in paths], write=write)


class SourceOfGoogleAuth(GoogleCredentials):
    def refresh(self, request: object) -> None:
        self.token = "wide"


async def test_the_exchange_is_the_one_that_google_auth_asks_for(runtime: FakeRuntime) -> None:
    async with fake_cloud(text(EXCHANGED, kind="application/json")) as cloud, connections(runtime) as outbound:
        (credential,) = await issuer(outbound, cloud, runtime).issue(GcpStorage(), scope("db/t"), "alice")

    asked: dict[str, str] = {}

    def send(url: str, method: str, headers: dict[str, str], body: bytes) -> object:
        asked.update(parse_qsl(body.decode()))
        assert (method, headers["Content-Type"]) == (cloud.asked[0].method, cloud.asked[0].headers["content-type"])

        class Answer:
            status = 200
            data = EXCHANGED.encode()

        return Answer()

    expression = condition(location("db/t"))
    source = SourceOfGoogleAuth()  # type: ignore[no-untyped-call]  # google-auth's are typed in part
    rule = downscoped.AccessBoundaryRule(
        available_resource="//storage.googleapis.com/projects/_/buckets/lake",
        available_permissions=["inRole:roles/storage.objectViewer"],
        availability_condition=downscoped.AvailabilityCondition(expression),
    )
    downscoped.Credentials(source, downscoped.CredentialAccessBoundary([rule])).refresh(send)
    ours, theirs = cloud.asked[0].form, asked
    assert json.loads(unquote(ours.pop("options"))) == json.loads(unquote(theirs.pop("options")))
    assert ours == theirs
    assert credential.prefix == "gs://lake/db/t"
    assert credential.expires_ms == runtime.ms + 1_800_000
    assert credential.config == {
        "gcs.oauth2.token": "narrow",
        "gcs.oauth2.token-expires-at": str(credential.expires_ms),
    }
    assert "narrow" not in repr(credential)


async def test_a_token_without_a_lifetime_ends_with_the_one_that_was_exchanged(runtime: FakeRuntime) -> None:
    answer = text(WITHOUT_LIFETIME, kind="application/json")
    async with fake_cloud(answer) as cloud, connections(runtime) as outbound:
        (credential,) = await issuer(outbound, cloud, runtime).issue(GcpStorage(), scope("t"), "alice")
        unknown = issuer(outbound, cloud, runtime, OwnToken(None))
        with pytest.raises(CredentialsRefused, match="states no whole number of seconds"):
            await unknown.issue(GcpStorage(), scope("t"), "alice")

    assert credential.expires_ms == runtime.ms + 3_000_000


@pytest.mark.parametrize(("lifetime_s", "asked_s", "told_s"), [(60, 60, 60), (7_200, 3_600, 1_200)])
async def test_clients_use_a_token_no_longer_than_the_lifetime_that_is_set_nor_than_google_says(
    runtime: FakeRuntime, lifetime_s: int, asked_s: int, told_s: int
) -> None:
    answers = text(ACTED, kind="application/json"), text(WITHOUT_LIFETIME, kind="application/json")
    async with fake_cloud(*answers) as cloud, connections(runtime) as outbound:
        made = GcsIssuer(
            outbound, OwnToken(None), runtime.now_ms, lifetime_s, sts_url=f"{cloud.uri}/v1/token", iam_url=cloud.uri
        )
        (credential,) = await made.issue(GcpStorage("lake@p.iam.gserviceaccount.com"), scope("t"), "alice")

    assert json.loads(cloud.asked[0].body)["lifetime"] == f"{asked_s}s"
    assert credential.expires_ms == runtime.ms + told_s * 1_000


@pytest.mark.parametrize("expiry", ["2026-01-01T00:20:00", "2026-01-01", "soon", ""])
async def test_an_expiry_without_a_time_zone_is_none(runtime: FakeRuntime, expiry: str) -> None:
    acted = text(ACTED.replace("2026-01-01T00:20:00Z", expiry), kind="application/json")
    async with fake_cloud(acted) as cloud, connections(runtime) as outbound:
        config = GcpStorage("lake@p.iam.gserviceaccount.com")
        with pytest.raises(CredentialsRefused, match="does not state when"):
            await issuer(outbound, cloud, runtime).issue(config, scope("t"), "alice")


async def test_the_catalog_acts_as_the_account_that_was_configured(runtime: FakeRuntime) -> None:
    answers = text(ACTED, kind="application/json"), text(WITHOUT_LIFETIME, kind="application/json")
    async with fake_cloud(*answers) as cloud, connections(runtime) as outbound:
        config = GcpStorage("lake@p.iam.gserviceaccount.com")
        (credential,) = await issuer(outbound, cloud, runtime).issue(config, scope("t"), "alice")

    acted, exchanged = cloud.asked
    assert acted.path == "/v1/projects/-/serviceAccounts/lake@p.iam.gserviceaccount.com:generateAccessToken"
    assert acted.headers["authorization"] == "Bearer wide"
    assert json.loads(acted.body)["lifetime"] == "3600s"
    assert exchanged.form["subject_token"] == "acted"
    assert credential.expires_ms == runtime.ms + 20 * 60_000


async def test_more_folders_than_a_boundary_has_rules_get_several_credentials(runtime: FakeRuntime) -> None:
    paths = [f"t{number:02}" for number in range(MAX_RULES + 1)]
    async with fake_cloud(text(EXCHANGED, kind="application/json")) as cloud, connections(runtime) as outbound:
        issued = await issuer(outbound, cloud, runtime).issue(GcpStorage(), scope(*paths), "alice")

    rules = [
        json.loads(unquote(asked.form["options"]))["accessBoundary"]["accessBoundaryRules"] for asked in cloud.asked
    ]
    assert [len(group) for group in rules] == [MAX_RULES, 1]
    assert [credential.prefix for credential in issued] == ["gs://lake/", "gs://lake/t10"]


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ('{"error":"invalid_grant","error_description":"expired"}', 400, "invalid_grant expired"),
        ('{"error":{"code":403,"status":"PERMISSION_DENIED","message":"denied"}}', 403, "PERMISSION_DENIED denied"),
        ("<html>", 404, "InvalidAnswer"),
        ("[]", 200, "InvalidAnswer"),
        ("{}", 200, "something else than an access token"),
        ('{"access_token":"a b"}', 200, "something else than an access token"),
    ],
)
async def test_a_refusal_is_told_with_its_reason(runtime: FakeRuntime, body: str, status: int, told: str) -> None:
    async with fake_cloud(text(body, status, "application/json")) as cloud, connections(runtime) as outbound:
        with pytest.raises(CredentialsRefused, match=told):
            await issuer(outbound, cloud, runtime).issue(GcpStorage(), scope("t"), "alice")


@pytest.mark.parametrize(
    ("failure", "told"), [(StoreDenied("none found"), CredentialsRefused), (StoreUnavailable("slow"), Unavailable)]
)
async def test_without_a_token_of_its_own_the_catalog_asks_nobody(
    runtime: FakeRuntime, failure: StoreDenied | StoreUnavailable, told: type[Exception]
) -> None:
    async with fake_cloud(text(EXCHANGED)) as cloud, connections(runtime) as outbound:
        with pytest.raises(told):
            await issuer(outbound, cloud, runtime, OwnToken(None, failure)).issue(GcpStorage(), scope("t"), "alice")

    assert cloud.asked == []


LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)


def allowed(expression: str, resource: str, prefix: str) -> bool:
    """What the condition means: a second reader of CEL, for expressions of this form."""
    texts = [re.sub(r"\\(.)", r"\1", literal, flags=re.DOTALL) for literal in LITERAL.findall(expression)]
    skeleton = LITERAL.sub("_", expression)
    assert skeleton == "resource.name.startsWith(_) || api.getAttribute(_, _).startsWith(_)"
    assert texts[1:3] == ["storage.googleapis.com/objectListPrefix", ""]
    return resource.startswith(texts[0]) or prefix.startswith(texts[3])


NAMES = st.text(st.sampled_from("ab'\\\"/|)(é"), min_size=1, max_size=8).filter(lambda name: name.strip("/"))


@given(folder=NAMES, key=NAMES)
def test_a_condition_is_true_if_and_only_if_the_object_or_the_prefix_is_inside(folder: str, key: str) -> None:
    place = location(folder)
    inside = key.startswith(f"{place.path}/")

    assert allowed(condition(place), f"projects/_/buckets/lake/objects/{key}", "") is inside
    assert allowed(condition(place), "projects/_/buckets/lake", key) is inside
    assert not allowed(condition(place), f"projects/_/buckets/pond/objects/{key}", "")
    assert not allowed(condition(place), "projects/_/buckets/lake", "")


@given(st.text(max_size=50))
def test_nothing_ends_a_literal(text: str) -> None:
    assert LITERAL.fullmatch(cel_string(text)) is not None


def test_writers_get_a_role_that_reads_and_writes_objects_and_readers_one_that_reads() -> None:
    def role(write: bool) -> object:
        document: dict[str, dict[str, list[dict[str, object]]]] = access_boundary([location("t")], write=write)  # type: ignore[assignment]
        return document["accessBoundary"]["accessBoundaryRules"][0]["availablePermissions"]

    assert role(write=False) == ["inRole:roles/storage.objectViewer"]
    assert role(write=True) == ["inRole:roles/storage.objectUser"]


def test_what_no_condition_can_name_gets_none() -> None:
    assert grouped([location("x" * 1_100), location("t", "lake/objects"), location("t", "LAKE")]) == []
