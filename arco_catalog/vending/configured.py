"""Makes the service that vends credentials from a deployment's environment variables, with the identity that the stores
use."""

from collections.abc import Callable, Mapping

from arco_catalog.config.variables import (
    VENDING_CONTAINER_SCOPE,
    VENDING_KEYS_FILE,
    VENDING_LIFETIME,
    VENDING_STRICT_SIGNATURES,
)
from arco_catalog.state.runtime import Runtime
from arco_catalog.vending.azure import AzureIssuer
from arco_catalog.vending.gcs import CLOUD_PLATFORM, GcsIssuer
from arco_catalog.vending.outbound import Outbound, WireOutbound
from arco_catalog.vending.service import Issuers, Outcome, Vending
from arco_catalog.vending.static_keys import StaticIssuer
from arco_catalog.vending.storage_config import AwsStorage
from arco_catalog.vending.storage_policy import StoragePolicy
from arco_catalog.vending.sts import StsIssuer
from storage_backends.azure.config import AzureConfig, ClientSecret
from storage_backends.azure.config import DefaultChain as AzureChain
from storage_backends.azure.credentials import EntraTokens
from storage_backends.base import StoreDenied
from storage_backends.gcs.config import UNIVERSE, AccessToken, Anonymous, GcsConfig
from storage_backends.gcs.credentials import GoogleTokens
from storage_backends.s3.config import S3Config
from storage_backends.s3.credentials import CredentialSource, credentials_of


def configured_vending(
    environment: Mapping[str, str], runtime: Runtime, count: Callable[[Outcome], None], outbound: Outbound | None = None
) -> Vending:
    """Returns the vending service with the credentials in the variables of the stores. Reads the file of static keys,
    if one is configured, and sends no request to a cloud. `count` is called with the outcome of every request for
    credentials that the cache does not answer. Raises `ValueError` for malformed variables, and for a file that is
    malformed or can't be read."""
    ca_bundle = environment.get("AWS_CA_BUNDLE") or environment.get("REQUESTS_CA_BUNDLE") or None
    outbound = outbound or WireOutbound(runtime.sleep, runtime.random, ca_bundle)
    lifetime_s = VENDING_LIFETIME.read(environment)
    keys = _aws_keys(environment)
    issuers = Issuers(
        s3=None if keys is None else StsIssuer(outbound, keys, runtime.now_ms, lifetime_s),
        gcs=_gcs(environment, outbound, runtime, lifetime_s),
        azure=_azure(environment, outbound, runtime, lifetime_s),
        static=_static(environment, runtime, lifetime_s),
        signer=keys,
        signer_of_amazon=AwsStorage(endpoint=S3Config.from_environment(environment).endpoint_url).is_amazon,
        strict_signatures=VENDING_STRICT_SIGNATURES.read(environment),
    )
    policy = StoragePolicy.from_environment(environment)
    return Vending(issuers, runtime.now_ms, count, outbound, policy=policy)


def _aws_keys(environment: Mapping[str, str]) -> CredentialSource | None:
    """Returns the source of the server's own AWS credentials, as the variables of the store configure it; None if only
    one key of the pair is set."""
    try:
        return credentials_of(S3Config.from_environment(environment).credentials)
    except StoreDenied:  # half a pair of keys: a server that needs them for its store does not start
        return None


def _static(environment: Mapping[str, str], runtime: Runtime, lifetime_s: int) -> StaticIssuer | None:
    """Returns the issuer that vends the keys in a file, None if the variables name no file. The file is read once now,
    so that an error in it is reported at start-up. Raises `ValueError` if it is malformed or can't be read."""
    file = environment.get(VENDING_KEYS_FILE.name)
    if not file:
        return None
    issuer = StaticIssuer(file, runtime.now_ms, lifetime_s)
    try:
        issuer.load()
    except OSError as error:
        raise ValueError(f"{VENDING_KEYS_FILE.name}: the file {file!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{VENDING_KEYS_FILE.name}: {error}") from error
    return issuer


def _gcs(environment: Mapping[str, str], outbound: Outbound, runtime: Runtime, lifetime_s: int) -> GcsIssuer | None:
    """Returns the issuer of credentials for GCS; None if the server's own can't be narrowed, because it has none or
    only a fixed token."""
    config = GcsConfig.from_environment(environment)
    if isinstance(
        config.credentials, Anonymous | AccessToken
    ):  # a token that is never renewed, and may be narrow already
        return None
    universe = environment.get("GOOGLE_CLOUD_UNIVERSE_DOMAIN") or UNIVERSE
    return GcsIssuer(outbound, GoogleTokens(config, [CLOUD_PLATFORM]), runtime.now_ms, lifetime_s, universe=universe)


def _azure(environment: Mapping[str, str], outbound: Outbound, runtime: Runtime, lifetime_s: int) -> AzureIssuer | None:
    """Returns the issuer of credentials for Azure; None if the server's own are not of an identity of Entra ID: only
    such an identity can get a user delegation key."""
    config = AzureConfig.from_environment(environment)
    if not isinstance(config.credentials, ClientSecret | AzureChain):  # a key of the account signs no user delegation
        return None
    tokens = EntraTokens(config.credentials, runtime.now_ms)
    return AzureIssuer(
        outbound,
        tokens,
        runtime.now_ms,
        lifetime_s,
        config,
        container_scope=VENDING_CONTAINER_SCOPE.read(environment),
    )
