"""What a catalog's configuration says is its manager's word, not the operator's: it leads no request of the server's to
another host, and no signature by the server's own key to another bucket than the table's."""

from collections.abc import Iterator
from itertools import product
from urllib.parse import unquote, urlsplit

import pytest

from arco_catalog.iceberg.errors import BadRequest, Forbidden
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.locations import Location
from arco_catalog.vending.configured import configured_vending
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.service import Vending
from arco_catalog.vending.sign_request import SignRequest
from arco_catalog.vending.storage_config import AwsStorage, parse_storage_config
from arco_catalog.vending.storage_policy import StoragePolicy
from arco_catalog.vending.sts import sts_url
from storage_backends.wire.endpoint import parse_endpoint
from tests.support.fake_runtime import FakeRuntime
from tests.vending.test_sts import ROLE

MINIO = "http://minio.internal:9000"
LOCAL = "http://[::1]:9000"
SERVERS = {("minio.internal", 9000), ("::1", 9000), ("sts.eu-west-1.amazonaws.com", 443)}
"""Where the server may send requests of catalogs in eu-west-1."""

# Hosts.

EVIL = "evil.example.com"
HOSTS = ("minio.internal", "sts.eu-west-1.amazonaws.com", "[::1]", EVIL, "169.254.169.254", "0251.0376.0251.0376")
SPELLINGS = (
    "{}",
    "{}.",
    "{}.evil.example.com",
    "evil.example.com.{}",
    "evil.example.com@{}",
    "{}@evil.example.com",
    ":@{}",
    "@{}",
    "{}:9000@evil.example.com",
    "{}%00.evil.example.com",
    "{}%2eevil.example.com",
    "evil.example.com[{}]",
    "[{}]",
    "[{}]evil.example.com",
    "xn--{}",
    "m\u0131nio.internal{}",
    "{}\uff0eevil.example.com",
    "evil.example.com\\{}",
    "{};evil.example.com",
    "{},evil.example.com",
    "[::ffff:169.254.169.254]{}",
    "[::1%25evil.example.com]{}",
)
ENDINGS = (
    "",
    ":443",
    ":9000",
    ":0",
    ":09000",
    ":",
    ":-1",
    ":9000/",
    ":9000/x",
    ":9000?",
    ":9000?x=1",
    ":9000#",
    "/..//",
)


def urls() -> Iterator[str]:
    for host, spelling, ending, scheme in product(HOSTS, SPELLINGS, ENDINGS, ("http", "https")):
        yield f"{scheme}://{spelling.format(host)}{ending}"
    for scheme in ("file", "gopher", "ftp", "http+unix", "//", "", "HTTP", "https:", "http:\\"):
        yield f"{scheme}://minio.internal:9000"


@pytest.mark.parametrize("name", ["endpoint", "endpointInternal", "stsEndpoint"])
def test_no_spelling_of_an_endpoint_leads_the_server_to_another_host(name: str) -> None:
    policy, allowed = StoragePolicy.of([MINIO, LOCAL]), 0
    for url in urls():
        document: JsonObject = {"storageType": "S3", "roleArn": ROLE, "region": "eu-west-1", name: url}
        try:
            config = parse_storage_config(document)
            policy.check(config)
        except BadRequest:
            continue
        assert isinstance(config, AwsStorage)
        parts = urlsplit(sts_url(config))
        asked = parse_endpoint(f"{parts.scheme}://{parts.netloc}", "vending")
        assert (asked.host, asked.port) in SERVERS, url
        assert EVIL not in url, url  # clients are told of it as it is spelled, and read it in their own ways
        allowed += 1
    assert allowed > 4


REGIONS = (
    *("evil.example.com/", "x.evil.example.com", "evil.example.com#", "evil.example.com?", "eu-west-1/", "eu-west-1#"),
    *(
        "eu-west-1.evil.example.com",
        "@evil",
        "eu-west-1:80",
        "eu_west_1",
        "EU-WEST-1",
        "eu-west-1\n",
        " eu-west-1",
        "é",
    ),
    *(
        "-",
        "a-",
        "-a",
        "a--b-1",
        "eu-west-1%2f",
        "elb",
        "execute-api",
        "s3-website",
        "compute-1",
        "s3",
        "eu-west-",
        "1",
    ),
    *(
        "eu-west-1 ",
        "\u0435u-west-1",
        "eu\u2010west-1",
        "eu-west-\u0661",
        "eu-west-1\\",
        "eu-west-1;",
        "[::1]",
        "..",
        ".",
    ),
)


@pytest.mark.parametrize("region", REGIONS)
def test_no_region_leads_the_server_out_of_amazons_own_services(region: str) -> None:
    for further in ({}, {"endpoint": "https://s3.us-east-1.amazonaws.com"}, {"stsUnavailable": False}):
        document: JsonObject = {"storageType": "S3", "roleArn": ROLE, "region": region, **further}
        with pytest.raises(BadRequest):
            use(document)


def use(document: JsonObject) -> None:
    """Takes a catalog's configuration, and checks it once more as before the first request that it would send."""
    config = parse_storage_config(document)
    policy = StoragePolicy.of([MINIO])
    policy.check(config)
    policy.check_use(config)


# Buckets.

LAKE = "lake"
PLACES = ("lake/theirs/t", "lake/lake/theirs/t", "theirs/secret", "t", "lake", "_/x")
"""Folders in the bucket that begin as the keys and buckets of others do."""
REQUESTS = ("GET", "HEAD", "PUT", "DELETE", "POST")


def configurations() -> Iterator[AwsStorage]:
    endpoints = (None, MINIO, "https://s3.us-east-1.amazonaws.com")
    for endpoint, internal, sts, path_style in product(endpoints, endpoints, (None, MINIO), (None, True, False)):
        yield AwsStorage(
            region="us-east-1",
            endpoint=endpoint,
            endpoint_internal=internal,
            sts_endpoint=sts,
            sts_unavailable=True,
            path_style=path_style,
        )


def addresses(place: str) -> Iterator[str]:
    for scheme, service in (
        ("https", "s3.us-east-1.amazonaws.com"),
        ("https", "s3.amazonaws.com"),
        ("http", MINIO[7:]),
    ):
        yield f"{scheme}://{service}/{LAKE}/{place}/1"
        yield f"{scheme}://{LAKE}.{service}/{place}/1"


def own_keys_of(endpoint: str | None) -> Vending:
    environment = {"AWS_ACCESS_KEY_ID": "AKOWN", "AWS_SECRET_ACCESS_KEY": "own", "ARCO_VENDING_ENDPOINTS": MINIO}
    return configured_vending(
        {**environment, **({} if endpoint is None else {"AWS_ENDPOINT_URL": endpoint})}, FakeRuntime(), lambda _: None
    )


@pytest.mark.parametrize("place", PLACES)
async def test_whatever_a_catalog_says_of_its_store_the_servers_own_key_signs_for_the_tables_folder_alone(
    place: str,
) -> None:
    """A store takes what was signed for any host: whoever sends it says which it is. One that does not look for buckets
    there takes the first folder of the path for the bucket, and MinIO takes headers that nobody signed."""
    vending, signed = own_keys_of(MINIO), 0
    scope = Scope.of([Location.parse(f"s3://{LAKE}/{place}")], write=True)
    for config, uri, method in product(configurations(), addresses(place), REQUESTS):
        request = SignRequest("us-east-1", uri, method, {})
        try:
            answer = await vending.sign(config, scope, "e", "alice", request)
        except Forbidden:
            continue
        signed += 1
        sent = unquote(urlsplit(answer.uri).path)
        assert sent.startswith(f"/{LAKE}/{place}/"), (config, uri)
        assert method != "PUT", (config, uri)
    assert signed > 0


async def test_where_the_store_is_amazons_it_signs_what_amazon_reads_as_it_was_meant() -> None:
    vending, scope = own_keys_of(None), Scope.of([Location.parse(f"s3://{LAKE}/lake/t")], write=True)
    for uri in list(addresses("lake/t"))[:4]:
        for method in ("GET", "PUT"):
            answer = await vending.sign(
                AwsStorage(region="us-east-1"), scope, "e", "alice", SignRequest("us-east-1", uri, method, {})
            )
            assert "AKOWN" in answer.headers["authorization"]
