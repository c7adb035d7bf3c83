"""What a storage configuration may make the server do: no host and no identity that the operator does not allow."""

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.vending.storage_config import AwsStorage, AzureStorage, FileStorage, GcpStorage, StorageConfig
from arco_catalog.vending.storage_policy import StoragePolicy

ROLE = "arn:aws:iam::123456789012:role/lake"
MINIO = "http://minio.internal:9000"
FIELDS = "endpoint", "endpoint_internal", "sts_endpoint"


def aws(region: str | None = "eu-west-1", **named: str) -> AwsStorage:
    fields = {name: value for name, value in named.items() if name in FIELDS}
    return AwsStorage(
        role_arn=ROLE,
        region=region,
        endpoint=fields.get("endpoint"),
        endpoint_internal=fields.get("endpoint_internal"),
        sts_endpoint=fields.get("sts_endpoint"),
    )


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://127.0.0.1:9000",
        "http://localhost",
        "http://[::1]:9000",
        "https://evil.example.com",
        "https://sts.eu-west-1.amazonaws.com.evil.example.com",
        "https://sts.eu-west-1.amazonaws.com:8443",
        "http://sts.eu-west-1.amazonaws.com",
        "https://sts.us-west-2.amazonaws.com",  # another region than the one that is signed for
        "https://sts.eu-west-1.amazonaws.com/path",
        "https://ec2-1-2-3-4.eu-west-1.compute.amazonaws.com",
        "https://abc.execute-api.eu-west-1.amazonaws.com",
        "https://bucket.s3.eu-west-1.amazonaws.com",
        "https://s3.amazonaws.com",  # of us-east-1 alone
        "https://vpce-1-2.sts.eu-west-1.vpce.amazonaws.com",
        f"{MINIO}/some/path",
        "https://minio.internal:9000",
        "http://minio.internal",
        "http://minio.internal.evil.example.com:9000",
        "http://minio.internal:9000@evil.example.com",
    ],
)
def test_an_endpoint_that_nobody_allowed_is_refused_with_what_to_do(name: str, url: str) -> None:
    policy = StoragePolicy.of([MINIO])
    with pytest.raises(BadRequest, match="ARCO_VENDING_ENDPOINTS"):
        policy.check(aws(**{name: url}))


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(
    ("region", "url"),
    [
        ("eu-west-1", "https://sts.eu-west-1.amazonaws.com"),
        ("eu-west-1", "https://STS.eu-west-1.amazonaws.com:443/"),
        ("us-gov-west-1", "https://sts-fips.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", "https://s3.cn-north-1.amazonaws.com.cn"),
        ("eu-west-1", "https://s3.dualstack.eu-west-1.amazonaws.com"),
        (None, "https://s3.amazonaws.com"),
        ("garage", MINIO),
        ("garage", "HTTP://Minio.Internal:9000/".replace("HTTP", "http")),
        ("auto", "https://account.r2.example.com"),
    ],
)
def test_amazons_own_and_those_that_the_operator_lists_are_allowed(name: str, region: str | None, url: str) -> None:
    StoragePolicy.of([MINIO, "https://account.r2.example.com:443"]).check(aws(region, **{name: url}))


@pytest.mark.parametrize("region", ["s3", "elb", "x", "auto", "compute-1", "new-test-region"])
def test_no_request_is_sent_to_a_region_that_would_lead_elsewhere_in_amazons_domain(region: str) -> None:
    StoragePolicy().check(aws(region))
    with pytest.raises(BadRequest, match=f"region {region}, which is none of Amazon's"):
        StoragePolicy().check_use(aws(region))
    with pytest.raises(BadRequest, match="ARCO_VENDING_ENDPOINTS"):
        StoragePolicy().check(aws(region, sts_endpoint=f"https://sts.{region}.amazonaws.com"))


@pytest.mark.parametrize(
    "config", [aws(), aws(None), AwsStorage(region="auto"), GcpStorage("a@p.iam"), AzureStorage("t"), FileStorage()]
)
def test_without_a_word_of_the_operator_clouds_are_reached_at_their_own_addresses_by_any_identity(
    config: StorageConfig,
) -> None:
    StoragePolicy().check(config)


@pytest.mark.parametrize(
    ("config", "allowed"),
    [
        (aws(), True),
        (AwsStorage(role_arn="arn:aws:iam::999999999999:role/lake"), False),
        (AwsStorage(role_arn="arn:aws:iam::123456789012:role/other"), False),
        (AwsStorage(), True),
        (GcpStorage("lake@one.iam.gserviceaccount.com"), True),
        (GcpStorage("lake@two.iam.gserviceaccount.com"), False),
        (GcpStorage(), True),
    ],
)
def test_an_identity_that_is_not_listed_is_refused(config: StorageConfig, allowed: bool) -> None:
    policy = StoragePolicy.of([], ["arn:aws:iam::123456789012:role/lake*", "*@one.iam.gserviceaccount.com"])
    if allowed:
        policy.check(config)
    else:
        with pytest.raises(BadRequest, match="ARCO_VENDING_IDENTITIES"):
            policy.check(config)


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_STS"])
def test_the_endpoint_of_the_servers_own_store_is_allowed(name: str) -> None:
    environment = {name: MINIO, "ARCO_VENDING_ENDPOINTS": "https://a.example, https://b.example:1"}
    policy = StoragePolicy.from_environment(environment)

    for url in (MINIO, "https://a.example", "https://b.example:1"):
        policy.check(aws(sts_endpoint=url))


@pytest.mark.parametrize("url", ["minio:9000", "//minio", "https://user@minio", "https://", "https://minio:x"])
def test_a_listed_endpoint_that_is_no_url_is_told_with_its_variable(url: str) -> None:
    with pytest.raises(ValueError, match="ARCO_VENDING_ENDPOINTS is invalid: "):
        StoragePolicy.from_environment({"ARCO_VENDING_ENDPOINTS": url})
