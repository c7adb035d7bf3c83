"""What the usual variables configure, what a URL names, and where that is."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from storage_backends import StoreError
from storage_backends.azure.config import (
    DEVELOPMENT_KEY,
    AzureConfig,
    ClientKind,
    ClientSecret,
    DefaultChain,
    SasToken,
    SharedKey,
)
from storage_backends.azure.endpoint import canonical_url, endpoint_of, place_of
from storage_backends.open import open_store
from storage_backends.url import StoreUrl

KEY = SharedKey("a2V5")
CONFIG = AzureConfig("account", KEY)
ABFSS = "abfss://container@account.dfs.core.windows.net"
ENTRA = {"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_CLIENT_SECRET": "hush-secret"}
CONNECTION = "DefaultEndpointsProtocol=https;AccountName=account;AccountKey=a2V5;EndpointSuffix=core.windows.net"


@pytest.mark.parametrize(
    ("environment", "config"),
    [
        ({}, AzureConfig()),
        ({"AZURE_STORAGE_ACCOUNT": "account", "AZURE_STORAGE_KEY": "a2V5"}, CONFIG),
        ({"AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_STORAGE_ACCOUNT_KEY": " a2V5\n"}, CONFIG),
        ({"AZURE_STORAGE_SAS_TOKEN": "?sv=1&sig=2"}, AzureConfig(None, SasToken("sv=1&sig=2"))),
        (ENTRA, AzureConfig(None, ClientSecret("tenant", "client", "hush-secret"))),
        ({**ENTRA, "AZURE_CLIENT_SECRET": ""}, AzureConfig(None, DefaultChain())),
        ({**ENTRA, "AZURE_STORAGE_KEY": "a2V5"}, AzureConfig(None, KEY)),
        (
            {**ENTRA, "AZURE_AUTHORITY_HOST": "https://login.example"},
            AzureConfig(None, ClientSecret("tenant", "client", "hush-secret", "https://login.example")),
        ),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": CONNECTION, **ENTRA},
            AzureConfig("account", KEY, "https://account.blob.core.windows.net"),
        ),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=http://h:1/a;AccountName=a;SharedAccessSignature=sv=1;"},
            AzureConfig("a", SasToken("sv=1"), "http://h:1/a"),
        ),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": "UseDevelopmentStorage=true"},
            AzureConfig("devstoreaccount1", SharedKey(DEVELOPMENT_KEY), "http://127.0.0.1:10000/devstoreaccount1"),
        ),
        (
            {"AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:1/account", "ARCO_AZURE_CLIENT": "sdk"},
            AzureConfig(endpoint_url="http://127.0.0.1:1/account", client=ClientKind.SDK),
        ),
        ({"REQUESTS_CA_BUNDLE": "/ca.pem"}, AzureConfig(ca_bundle="/ca.pem")),
    ],
)
def test_the_usual_variables_configure_a_store(environment: Mapping[str, str], config: AzureConfig) -> None:
    assert AzureConfig.from_environment(environment) == config


def test_a_connection_string_that_cannot_be_read_is_reported_and_not_quoted() -> None:
    with pytest.raises(ValueError, match="AZURE_STORAGE_CONNECTION_STRING") as raised:
        AzureConfig.from_environment({"AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;hush"})
    assert "hush" not in str(raised.value)


def test_a_client_is_wire_or_sdk() -> None:
    with pytest.raises(ValueError, match="expected wire or sdk"):
        AzureConfig.from_environment({"ARCO_AZURE_CLIENT": "curl"})


def test_a_configuration_that_is_shown_shows_no_secret() -> None:
    environments: list[dict[str, str]] = [
        {"AZURE_STORAGE_KEY": "hush"},
        {"AZURE_STORAGE_SAS_TOKEN": "sig=hush"},
        ENTRA,
        {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;AccountKey=hush"},
    ]
    for environment in environments:
        assert "hush" not in f"{AzureConfig.from_environment(environment)}"


@pytest.mark.parametrize(
    ("url", "account", "endpoint", "canonical"),
    [
        (f"{ABFSS}/a/b", "account", "https://account.blob.core.windows.net", f"{ABFSS}/a/b"),
        (ABFSS.replace("abfss", "abfs"), "account", "https://account.blob.core.windows.net", ABFSS),
        ("az://container/a", "account", None, f"{ABFSS}/a"),
        ("abfss://container/", "account", None, f"{ABFSS}/"),
        (
            "abfss://container@account.z01.dfs.storage.azure.net/a",
            "account",
            "https://account.z01.blob.storage.azure.net",
            "abfss://container@account.z01.dfs.storage.azure.net/a",
        ),
    ],
)
def test_a_url_names_a_container_and_an_account(url: str, account: str, endpoint: str | None, canonical: str) -> None:
    place = place_of(StoreUrl.parse(url), CONFIG)

    assert (place.container, place.config.account, place.config.endpoint_url) == ("container", account, endpoint)
    assert canonical_url(StoreUrl.parse(url), CONFIG) == canonical


@pytest.mark.parametrize("container", ["a-b", "a" * 63, f"{'a-' * 31}b"])
def test_names_of_containers_have_3_to_63_characters_with_their_hyphens(container: str) -> None:
    assert place_of(StoreUrl.parse(f"az://{container}/a"), CONFIG).container == container


def test_another_cloud_is_named_by_its_endpoint() -> None:
    config = replace(CONFIG, endpoint_url="https://account.blob.core.chinacloudapi.cn")

    url = canonical_url(StoreUrl.parse("az://container/a"), config)

    assert url == "abfss://container@account.dfs.core.chinacloudapi.cn/a"
    assert place_of(StoreUrl.parse(url), replace(CONFIG, account=None)).config.endpoint_url == config.endpoint_url


@pytest.mark.parametrize(
    ("url", "report"),
    [
        ("az:///a", "must name a container"),
        ("az://Container/a", "must name a container"),
        ("az://a/a", "must name a container"),
        ("az://-container/a", "must name a container"),
        ("az://con--tainer/a", "must name a container"),
        (f"az://{'a-' * 31}bc/a", "must name a container"),
        ("abfss://container@account.example.org/a", "names no account"),
        ("abfss://container@account.blob.core.windows.net/a", "names no account"),
        ("abfss://container@account-secondary.dfs.core.windows.net/a", "names no account"),
        ("abfss://container@account.dfs.core.windows.net.example.org/a", "names no account"),
        ("abfss://container@other.dfs.core.windows.net/a", "another account than 'account'"),
        (f"{ABFSS}/a/../b", r"'\.' or '\.\.' segment"),
        (f"{ABFSS}/a\\b", "must not contain a backslash"),
        ("https://account.blob.core.windows.net/container", "unsupported store URL"),
    ],
)
def test_what_names_no_container_of_the_account_is_refused(url: str, report: str) -> None:
    with pytest.raises(ValueError, match=report):
        open_store(url, {"AZURE_STORAGE_ACCOUNT": "account", "AZURE_STORAGE_KEY": "a2V5"})


def test_without_an_account_a_container_is_nowhere() -> None:
    with pytest.raises(ValueError, match="set AZURE_STORAGE_ACCOUNT, or write abfss://container@ACCOUNT"):
        open_store("az://container/a", {})


def test_an_identity_may_have_rights_in_more_than_one_account() -> None:
    url = StoreUrl.parse("abfss://container@other.dfs.core.windows.net/a")

    place = place_of(url, AzureConfig("account", DefaultChain()))

    assert (place.config.account, place.config.endpoint_url) == ("other", "https://other.blob.core.windows.net")


@pytest.mark.parametrize(
    ("endpoint_url", "url"),
    [
        (None, "https://account.blob.core.windows.net/container"),
        ("http://127.0.0.1:10000/account/", "http://127.0.0.1:10000/account/container"),
        ("https://[::1]:443", "https://[::1]/container"),
    ],
)
def test_a_container_has_an_address(endpoint_url: str | None, url: str) -> None:
    assert endpoint_of("container", replace(CONFIG, endpoint_url=endpoint_url)).url == url


def test_an_account_has_a_name_that_hosts_can_have() -> None:
    with pytest.raises(StoreError, match="invalid account name"):
        endpoint_of("container", AzureConfig("account.example.org/", KEY))
