"""What the management API says of a catalog's storage, and what of it clients are told."""

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.locations import Location
from arco_catalog.vending.scope import Scope, common_folder
from arco_catalog.vending.storage_config import (
    AwsStorage,
    AzureStorage,
    FileStorage,
    GcpStorage,
    StorageConfig,
    parse_storage_config,
)

AWS: JsonObject = {
    "storageType": "S3",
    "allowedLocations": ["s3://lake/"],
    "roleArn": "arn:aws-cn:iam::123456789012:role/lake",
    "externalId": "secret-handshake",
    "userArn": "arn:aws-cn:iam::123456789012:user/polaris",
    "currentKmsKey": "arn:aws-cn:kms:cn-north-1:123456789012:key/1",
    "allowedKmsKeys": ["arn:aws-cn:kms:cn-north-1:123456789012:key/2"],
    "region": "cn-north-1",
    "endpoint": "https://s3.example.com:1234",
    "stsEndpoint": "https://sts.example.com:1234",
    "stsUnavailable": True,
    "endpointInternal": "https://s3.internal.example.com:1234",
    "pathStyleAccess": True,
    "kmsUnavailable": True,
}


@pytest.mark.parametrize(
    ("document", "config"),
    [
        (
            AWS,
            AwsStorage(
                "arn:aws-cn:iam::123456789012:role/lake",
                "secret-handshake",
                "cn-north-1",
                "https://s3.example.com:1234",
                "https://s3.internal.example.com:1234",
                "https://sts.example.com:1234",
                sts_unavailable=True,
                path_style=True,
                current_kms_key="arn:aws-cn:kms:cn-north-1:123456789012:key/1",
                allowed_kms_keys=("arn:aws-cn:kms:cn-north-1:123456789012:key/2",),
                kms_unavailable=True,
            ),
        ),
        ({"storageType": "S3"}, AwsStorage()),
        (
            {"storageType": "GCS", "gcsServiceAccount": "lake@p.iam.gserviceaccount.com"},
            GcpStorage("lake@p.iam.gserviceaccount.com"),
        ),
        ({"storageType": "GCS", "gcsServiceAccount": "my-sa"}, GcpStorage("my-sa")),
        ({"storageType": "AZURE", "tenantId": "t", "hierarchical": True}, AzureStorage("t", hierarchical=True)),
        ({"storageType": "AZURE", "tenantId": "t"}, AzureStorage("t")),
        ({"storageType": "FILE"}, FileStorage()),
    ],
)
def test_each_kind_of_storage_is_read(document: JsonObject, config: StorageConfig) -> None:
    assert parse_storage_config(document) == config


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"storageType": "FTP"},
        {"storageType": "AZURE"},
        {"storageType": "S3", "endpoint": "ftp://s3.example.com"},
        {"storageType": "S3", "endpoint": "https://user@s3.example.com"},
        {"storageType": "S3", "endpoint": "https://s3.example.com?x=y"},
        {"storageType": "S3", "endpoint": "https://s3.example.com:99999"},
        {"storageType": "S3", "stsEndpoint": "//sts.example.com"},
        {"storageType": "S3", "region": "us east"},
        {"storageType": "S3", "roleArn": "arn:aws:iam::1:role/a b"},
        {"storageType": "S3", "roleArn": 7},
        {"storageType": "S3", "allowedKmsKeys": "key"},
        {"storageType": "S3", "allowedKmsKeys": [7]},
        {"storageType": "S3", "pathStyleAccess": "true"},
        {"storageType": "GCS", "gcsServiceAccount": "../x@y/z"},
        {"storageType": "FILE", "storageName": []},
        {"storageType": "S3", "userArn": 7},
        {"storageType": "AZURE", "tenantId": "t", "consentUrl": {}},
        {"storageType": "FILE", "allowedLocations": "file:///lake"},
        {"storageType": "FILE", "allowedLocations": ["file:///lake", 7]},
    ],
)
def test_what_cannot_be_is_refused(document: JsonObject) -> None:
    with pytest.raises(BadRequest, match="storageConfigInfo"):
        parse_storage_config(document)


def test_clients_are_told_where_the_store_is_and_nothing_of_roles_or_the_catalogs_own_endpoints() -> None:
    storage = parse_storage_config(AWS)

    assert isinstance(storage, AwsStorage)
    assert storage.client_properties == {
        "client.region": "cn-north-1",
        "s3.region": "cn-north-1",
        "s3.endpoint": "https://s3.example.com:1234",
        "s3.path-style-access": "true",
    }


@pytest.mark.parametrize(
    ("endpoint", "amazon"),
    [
        (None, True),
        ("https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com", True),
        ("https://s3.cn-north-1.amazonaws.com.cn", True),
        ("http://127.0.0.1:9000", False),
        ("https://amazonaws.com.example.org", False),
        ("https://evilamazonaws.com", False),
    ],
)
def test_who_judges_policies_is_told_by_the_endpoint(endpoint: str | None, amazon: bool) -> None:
    for config in (
        AwsStorage(endpoint=endpoint),
        AwsStorage(endpoint_internal=endpoint),
        AwsStorage(sts_endpoint=endpoint),
    ):
        assert config.is_amazon is amazon


@pytest.mark.parametrize(
    ("locations", "folder"),
    [
        (["s3://b/db/t"], "s3://b/db/t"),
        (["s3://b/db/t", "s3://b/db/t2"], "s3://b/db"),
        (["s3://b/x", "s3://b/y"], "s3://b/"),
        (["s3://b/x", "s3://c/x"], "s3://"),
    ],
)
def test_a_credential_is_found_by_the_folder_that_its_locations_share(locations: list[str], folder: str) -> None:
    assert common_folder([Location.parse(location) for location in locations]) == folder


def test_neither_a_bucket_nor_a_catalogs_own_state_is_ever_in_scope() -> None:
    asked = ["s3://b", "s3://c/_catalog/x", "s3://c/%5Fcatalog", "s3://c/t", "s3://c/t/data", "gs://c/t", "file:///t"]
    scope = Scope.of([Location.parse(text) for text in asked], write=True)

    assert [location.uri for location in scope.in_store("s3")] == ["s3://c/t"]
