"""Whatever a table's locations are called, no credential of any cloud opens a byte outside of them: from the text that
a client sent to what the cloud would judge, read by second readers of each policy language."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hmac import digest
from urllib.parse import parse_qs, parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.vending.azure import AzureIssuer
from arco_catalog.vending.azure_sas import string_to_sign
from arco_catalog.vending.gcs import GcsIssuer
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.service import Issuers, Vending
from arco_catalog.vending.storage_config import AwsStorage, AzureStorage, GcpStorage, StorageConfig
from arco_catalog.vending.storage_policy import StoragePolicy
from arco_catalog.vending.sts import StsIssuer
from storage_backends.wire.http1 import Response
from tests.support.fake_runtime import FakeRuntime
from tests.vending import test_azure, test_gcs, test_sts
from tests.vending.aws_policies import allows
from tests.vending.fake_clouds import OwnKeys

MINIO = "http://127.0.0.1:9000"
ROOTS = {
    "s3": "s3://lake/home",
    "gs": "gs://lake/home",
    "abfss": "abfss://data@lakeacct.dfs.core.windows.net/home",
}

SEGMENT = st.one_of(
    st.text(st.sampled_from("at*?${}'\"\\%|()é漢🦆 ~\u202e\u00ad"), min_size=1, max_size=6),
    st.sampled_from(["..", ".", "%2e%2e", "%252e", "a%2fb", "%2a", "${aws:username}", "*", "**", "t', ''", "t' || '"]),
)
PATH = st.lists(SEGMENT, min_size=0, max_size=3).map("/".join)
ENDING = st.sampled_from(["", "/", "//"])


class Clouds:
    """STS, Google's and Azure's services, which give what they are asked for, and remember it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bytes]] = []

    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        self.asked.append((url, body))
        if "userdelegationkey" in url:
            return Response(200, {}, test_azure.answer().encode())
        return Response(200, {}, (test_gcs.EXCHANGED if "googleapis" in url else test_sts.answer()).encode())

    async def close(self) -> None:
        return None


Opens = Callable[[str, bool], bool]
"""Whether a key of the bucket may be read, or written."""


async def vended(config: StorageConfig, locations: Sequence[Location], write: bool) -> list[Opens]:
    """What each credential opens that is given for these locations."""
    runtime, clouds = FakeRuntime(), Clouds()
    issuers = Issuers(
        s3=StsIssuer(clouds, OwnKeys(), runtime.now_ms),
        gcs=GcsIssuer(clouds, test_gcs.OwnToken(runtime.ms + 3_000_000), runtime.now_ms),
        azure=AzureIssuer(clouds, test_azure.OwnToken(), runtime.now_ms),
    )
    vending = Vending(issuers, runtime.now_ms, lambda _: None, policy=StoragePolicy.of([MINIO]))
    scope = Scope.of(locations, write=write)
    issued = await vending.credentials(config, scope, "e", "alice", None, lambda _: True)
    forms = [dict(parse_qsl(body.decode())) for url, body in clouds.asked if "userdelegationkey" not in url]
    match config:
        case AwsStorage():
            assert len(forms) == len(issued)
            return [by_session_policy(form["Policy"], config) for form in forms]
        case GcpStorage():
            assert len(forms) == len(issued)
            return [by_boundary(json.loads(unquote(form["options"]))) for form in forms]
    return [by_signature(each.config["adls.sas-token"]) for each in issued]


def by_session_policy(policy: str, config: AwsStorage) -> Opens:
    if MINIO in (config.endpoint, config.sts_endpoint):  # which has no escapes, and may have variables
        assert "${" not in policy
    assert len(policy) <= 2_048

    def opens(key: str, write: bool) -> bool:
        actions = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"] if write else ["s3:GetObject"]
        objects = [allows(policy, action, f"arn:aws:s3:::lake/{key}") for action in actions]
        assert len(set(objects)) == 1
        listed = not write and allows(policy, "s3:ListBucket", "arn:aws:s3:::lake", key)
        return objects[0] or listed

    return opens


def by_boundary(document: dict[str, dict[str, list[dict[str, object]]]]) -> Opens:
    rules = document["accessBoundary"]["accessBoundaryRules"]

    def opens(key: str, write: bool) -> bool:
        found = False
        for rule in rules:
            condition = rule["availabilityCondition"]
            assert isinstance(condition, dict)
            assert rule["availableResource"] == "//storage.googleapis.com/projects/_/buckets/lake"
            writes = rule["availablePermissions"] == ["inRole:roles/storage.objectUser"]
            resource = f"projects/_/buckets/lake/objects/{key}"
            judged = test_gcs.allowed(str(condition["expression"]), resource, "") or test_gcs.allowed(
                str(condition["expression"]), "projects/_/buckets/lake", key
            )
            found |= judged and (writes or not write)
        return found

    return opens


def by_signature(token: str) -> Opens:
    """As Azure judges: the signature must be that of the first segments of the path, as many as `sdd` says."""
    fields = {name: values[0] for name, values in parse_qs(token, strict_parsing=True).items()}
    assert fields["sr"] == "d"

    def opens(key: str, write: bool) -> bool:
        directory = key.split("/")[: int(fields["sdd"])]
        signed = {name: value for name, value in fields.items() if name not in ("sig", "sdd")}
        text = string_to_sign(signed, "/".join(["", "blob", "lakeacct", "data", *directory]))
        valid = b64encode(digest(b64decode(test_azure.VALUE), text.encode(), "sha256")).decode() == fields["sig"]
        return valid and (not write or "w" in fields["sp"])

    return opens


def neighbours(location: Location) -> Iterator[str]:
    """Keys that a careless policy would open, or that lie inside."""
    path = location.path
    yield from (f"{path}/1", f"{path}/a/b", path, f"{path}2", f"{path}2/1", f"{path}*/1", f"{path[:-1]}/1")
    yield from (path.upper() + "/1", unquote(path) + "/1", path.replace("*", "x") + "/1", path.replace("?", "y") + "/1")
    yield from (path.replace("${aws:username}", "alice") + "/1", path.replace("/", "//") + "/1", f"x{path}/1")
    yield from ("home/1", "home/", "", "1", "_catalog/core/manifest.json", f"{path}/../1", "home/other/1")


@pytest.mark.parametrize(
    ("scheme", "config"),
    [
        ("s3", AwsStorage(role_arn=test_sts.ROLE, region="eu-west-1")),
        ("s3", AwsStorage(role_arn=test_sts.ROLE, region="eu-west-1", endpoint=MINIO)),
        ("s3", AwsStorage(role_arn=test_sts.ROLE, region="eu-west-1", sts_endpoint=MINIO)),
        ("gs", GcpStorage()),
        ("abfss", AzureStorage("tid", hierarchical=True)),
    ],
    ids=["amazon", "minio", "minios-sts", "google", "azure"],
)
@given(sent=st.lists(st.tuples(PATH, ENDING), min_size=1, max_size=4), write=st.booleans())
async def test_no_credential_opens_a_byte_outside_of_the_locations(
    scheme: str, config: StorageConfig, sent: list[tuple[str, str]], write: bool
) -> None:
    rules = AllowedLocations([Location.parse(ROOTS[scheme])], [Location.parse(f"{ROOTS[scheme]}/state")])
    locations = list[Location]()
    for path, ending in sent:
        try:
            locations.append(rules.check(f"{ROOTS[scheme]}/{path}{ending}"))
        except BadRequest:
            continue
    if not locations:
        return

    opening = await vended(config, locations, write)

    keys = {key for location in locations for key in neighbours(location)}
    for key in keys:
        within = f"{key}/" if scheme == "abfss" else key  # a signature for a directory is also for what has its name
        inside = any(within.startswith(f"{location.path}/") for location in locations)
        for opens in opening:
            assert inside or not opens(key, False)
            assert (inside and write) or not opens(key, True)
    if scheme != "s3" or config == AwsStorage(role_arn=test_sts.ROLE, region="eu-west-1"):
        for location in locations:
            assert any(opens(f"{location.path}/1", write) for opens in opening)
