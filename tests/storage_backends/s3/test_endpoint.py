"""Where a bucket answers: botocore's rules as an oracle, and what is refused."""

from urllib.parse import urlsplit

import pytest
from botocore.awsrequest import AWSPreparedRequest  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.loaders import create_loader  # type: ignore[import-untyped]
from botocore.session import get_session  # type: ignore[import-untyped]

from storage_backends import StoreDenied, StoreError, StoreUnavailable
from storage_backends.s3.config import Addressing, S3Config
from storage_backends.s3.endpoint import endpoint_of
from storage_backends.wire.endpoint import Endpoint

MODELS = create_loader()
BUCKETS = ("bucket", "with-dash-1", "dotted.bucket", "Old_Bucket")
AMAZON = "s3.us-east-1.amazonaws.com"
FIPS, DUAL = "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT"


class _AboutToLeave(Exception):
    """Stops botocore where it would connect."""


def botocores_addresses(region: str, environment: dict[str, str]) -> list[tuple[str, str]]:
    """Of a key in each of `BUCKETS`."""
    session = get_session()
    session.register_component("data_loader", MODELS)
    client = session.create_client(
        "s3",
        region_name=region,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=Config(
            s3={"us_east_1_regional_endpoint": "regional"},
            use_fips_endpoint=environment.get(FIPS) == "true",
            use_dualstack_endpoint=environment.get(DUAL) == "true",
        ),
    )

    def stop(request: AWSPreparedRequest, **_context: object) -> None:
        raise _AboutToLeave(request.url)

    client.meta.events.register("before-send.s3", stop)
    addresses = []
    for bucket in BUCKETS:
        with pytest.raises(_AboutToLeave) as raised:
            client.get_object(Bucket=bucket, Key="key")
        parts = urlsplit(str(raised.value))
        assert parts.scheme == "https"
        addresses.append((parts.netloc, parts.path))
    return addresses


@pytest.mark.parametrize(
    ("region", "environment"),
    [
        ("us-east-1", {}),
        ("eu-central-1", {}),
        ("eu-central-1", {DUAL: "true"}),
        ("us-east-2", {FIPS: "true"}),
        ("us-east-2", {FIPS: "true", DUAL: "true"}),
        ("us-gov-west-1", {}),
        ("us-gov-west-1", {FIPS: "true"}),
        ("cn-north-1", {}),
        ("cn-northwest-1", {DUAL: "true"}),
        ("us-iso-east-1", {}),
        ("us-isob-east-1", {}),
        ("us-isof-south-1", {}),
        ("eu-isoe-west-1", {}),
        ("eusc-de-east-1", {}),
        ("mx-central-1", {}),
    ],
)
def test_botocore_finds_the_same_address(
    region: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    config = S3Config.from_environment(environment)
    ours = [endpoint_of(bucket, region, config) for bucket in BUCKETS]

    assert [(one.authority, f"{one.path}key") for one in ours] == botocores_addresses(region, environment)
    assert all((one.tls, one.host, one.port) == (True, one.authority, 443) for one in ours)


@pytest.mark.parametrize(
    ("environment", "endpoint"),
    [
        ({"AWS_ENDPOINT_URL_S3": "http://h:9000"}, Endpoint(False, "h", 9000, "h:9000", "/b.cket/")),
        ({"AWS_ENDPOINT_URL": "https://h"}, Endpoint(True, "h", 443, "h", "/b.cket/")),
        ({"AWS_ENDPOINT_URL": "http://h:80/"}, Endpoint(False, "h", 80, "h", "/b.cket/")),
        ({"AWS_ENDPOINT_URL": "https://h/s3/"}, Endpoint(True, "h", 443, "h", "/s3/b.cket/")),
        ({"AWS_ENDPOINT_URL": "http://[::1]:1"}, Endpoint(False, "::1", 1, "[::1]:1", "/b.cket/")),
        (
            {"AWS_ENDPOINT_URL": "http://not-this-one", "AWS_ENDPOINT_URL_S3": "http://h"},
            Endpoint(False, "h", 80, "h", "/b.cket/"),
        ),
    ],
)
def test_an_endpoint_of_ones_own_has_the_bucket_in_its_path(environment: dict[str, str], endpoint: Endpoint) -> None:
    assert endpoint_of("b.cket", "us-east-1", S3Config.from_environment(environment)) == endpoint


@pytest.mark.parametrize(
    ("endpoint_url", "addressing", "endpoint"),
    [
        (None, Addressing.PATH, Endpoint(True, AMAZON, 443, AMAZON, "/bucket/")),
        (None, Addressing.VIRTUAL, Endpoint(True, f"bucket.{AMAZON}", 443, f"bucket.{AMAZON}", "/")),
        ("http://h:9000", Addressing.PATH, Endpoint(False, "h", 9000, "h:9000", "/bucket/")),
        ("http://h:9000", Addressing.VIRTUAL, Endpoint(False, "bucket.h", 9000, "bucket.h:9000", "/")),
        ("https://h/s3", Addressing.VIRTUAL, Endpoint(True, "bucket.h", 443, "bucket.h", "/s3/")),
    ],
)
def test_a_configuration_chooses_where_requests_name_the_bucket(
    endpoint_url: str | None, addressing: Addressing, endpoint: Endpoint
) -> None:
    assert endpoint_of("bucket", "us-east-1", S3Config(endpoint_url=endpoint_url, addressing=addressing)) == endpoint


def test_a_bucket_whose_name_no_host_can_have_is_not_put_there() -> None:
    with pytest.raises(StoreError, match="use path addressing"):
        endpoint_of("dotted.bucket", "us-east-1", S3Config(addressing=Addressing.VIRTUAL))


@pytest.mark.parametrize(
    ("bucket", "region", "environment", "why"),
    [
        ("b/../c", "us-east-1", {}, "invalid bucket name"),
        ("bucket", "us-east-1.evil.com/", {}, "invalid region"),
        ("bucket", "us-east-1", {"AWS_ENDPOINT_URL": "no url"}, "expected an endpoint"),
        ("bucket", "us-east-1", {"AWS_ENDPOINT_URL": "ftp://h"}, "expected an endpoint"),
        ("bucket", "us-east-1", {"AWS_ENDPOINT_URL": "http://u:p@h"}, "expected an endpoint"),
        ("bucket", "us-east-1", {"AWS_ENDPOINT_URL": "http://h:port"}, "invalid endpoint URL"),
        ("bucket", "us-east-1", {"AWS_ENDPOINT_URL": "http://[::1"}, "invalid endpoint URL"),
        ("bucket", "us-east-1", {"AWS_ENDPOINT_URL": "http://h", FIPS: "true"}, "FIPS"),
    ],
)
def test_what_is_no_address_is_refused_in_words(
    bucket: str, region: str, environment: dict[str, str], why: str
) -> None:
    with pytest.raises(StoreError, match=why) as raised:
        endpoint_of(bucket, region, S3Config.from_environment(environment))
    assert not isinstance(raised.value, StoreUnavailable | StoreDenied)
