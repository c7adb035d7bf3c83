"""The service that vends credentials for a scope, and signatures for single requests."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from enum import StrEnum
from itertools import chain

from arco_catalog.config.variables import VENDING_STRICT_SIGNATURES
from arco_catalog.iceberg.errors import BadRequest, Forbidden, Unavailable
from arco_catalog.state.locations import Location
from arco_catalog.vending.azure import AzureIssuer
from arco_catalog.vending.cache import CredentialCache
from arco_catalog.vending.credential import StorageCredential, longest_first
from arco_catalog.vending.errors import CredentialsRefused, own_credentials
from arco_catalog.vending.gcs import GcsIssuer
from arco_catalog.vending.outbound import Outbound
from arco_catalog.vending.s3_policy import grouped
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.sign_request import SignedRequest, SignRequest
from arco_catalog.vending.signing import CheckedRequest, check_request, sign
from arco_catalog.vending.static_keys import StaticIssuer
from arco_catalog.vending.storage_config import AwsStorage, AzureStorage, FileStorage, GcpStorage, StorageConfig
from arco_catalog.vending.storage_policy import StoragePolicy
from arco_catalog.vending.sts import StsIssuer, session_keys
from storage_backends.lazy_dataclass import dataclass
from storage_backends.s3.credentials import CredentialSource
from storage_backends.s3.signature import Credentials

_LOG = logging.getLogger(__name__)


class Outcome(StrEnum):
    """The outcome of a request for vended credentials, for a counter: `NONE` if there were none to vend, `REFUSED` if
    an operator must act, `UNAVAILABLE` if a later request may succeed."""

    ISSUED = "issued"
    NONE = "none"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Issuers:
    """What issues credentials for each cloud; None where the deployment has no access to it.

    `static` has keys of stores without STS. `signer` is the source of the key that signs single requests to S3 if no
    key can be had that gives access to one table alone; `signer_of_amazon` is whether it is for Amazon's S3.
    `strict_signatures` is whether, as the operator has confirmed, the store refuses `x-amz-` headers that are not
    signed, and bodies without the signed hash, as Amazon's does. Otherwise that key signs no PUT and no DeleteObjects
    for stores other than Amazon's: on MinIO, a client could make a PUT copy any object, and a DeleteObjects delete any.
    """

    s3: StsIssuer | None = None
    gcs: GcsIssuer | None = None
    azure: AzureIssuer | None = None
    static: StaticIssuer | None = None
    signer: CredentialSource | None = field(default=None, repr=False)
    signer_of_amazon: bool = False
    strict_signatures: bool = False


class Vending:
    """Vends credentials and signatures for the files of tables, for any number of catalogs. `count` is called with the
    outcome of each request for credentials that the cache did not answer, and of each for static keys that `policy`
    allows; `now_ms` is the clock. `close` closes `outbound`. `policy` is what storage configurations may make the
    service do now, whatever was allowed when they were written."""

    def __init__(
        self,
        issuers: Issuers,
        now_ms: Callable[[], int],
        count: Callable[[Outcome], None],
        outbound: Outbound | None = None,
        cache_size: int = 4_096,
        policy: StoragePolicy | None = None,
    ) -> None:
        self._issuers = issuers
        self._policy = policy or StoragePolicy()
        self._now_ms = now_ms
        self._count = count
        self._outbound = outbound
        self._cache = CredentialCache(now_ms, cache_size)

    async def credentials(
        self,
        config: StorageConfig,
        scope: Scope,
        entity: str,
        principal: str,
        refresh_endpoint: str | None = None,
        owns: Callable[[Location], bool] = lambda _: False,
    ) -> tuple[StorageCredential, ...]:
        """Returns credentials for the scope, longest prefix first; none where vending is impossible, or where the
        policy forbids to use the storage configuration. The caller has checked the locations and the grants on a fresh
        read of the registry. Static keys and signatures for containers give access to more than the scope: they are
        vended only where the catalog owns all of it, by `owns`.

        Raises `Unavailable` for a passing failure of the cloud, `CredentialsRefused` if it refuses, or if the server's
        own credentials or the file of static keys are missing or malformed.
        """
        static = self._issuers.static
        if static is not None and isinstance(config, AwsStorage) and not config.assumes_role:
            issued = await self._counted(static.issue(config, scope, owns)) if self._allows(config) else ()
        else:
            opened = (
                scope.in_own_buckets(owns) if isinstance(config, AzureStorage) and not config.hierarchical else scope
            )
            issued = await self._issued(config, opened, entity, principal)
        return tuple(credential.refreshed_at(refresh_endpoint) for credential in issued)

    async def sign(
        self, config: StorageConfig, scope: Scope, entity: str, principal: str, request: SignRequest
    ) -> SignedRequest:
        """Returns the request with a signature, by keys that give access to the scope alone, and only to read for a
        request that reads, if the cloud issues such keys, else by the deployment's own. Raises `Forbidden` if the
        storage is not S3, or the operator does not allow its configuration, and for a request that the scope does not
        allow or that no key may sign; `Unavailable` if the cloud does not answer, and `CredentialsRefused` if it
        refuses, or the server has no credentials for it."""
        if not isinstance(config, AwsStorage):
            raise Forbidden("Not signed: this catalog's storage is not S3")
        if not self._allows(config):
            raise Forbidden(
                "Not signed: the operator does not allow this server to use the catalog's storage configuration: the "
                "server's log gives the reason"
            )
        checked = check_request(config, scope, request)
        keys = await self._narrow_keys(config, replace(scope, write=checked.writes), entity, principal, checked)
        return sign(checked, keys or await self._own_keys(config, checked), self._now_ms())

    async def close(self) -> None:
        """Closes the connections of `outbound`, by which credentials are requested; does nothing without one."""
        if self._outbound is not None:
            await self._outbound.close()

    async def _issued(
        self, config: StorageConfig, scope: Scope, entity: str, principal: str
    ) -> tuple[StorageCredential, ...]:
        """Returns the credentials of a cloud, from the cache or issued now. Raises `Unavailable` if the cloud does not
        answer, and `CredentialsRefused` if it refuses, or the server has no credentials for it."""
        key = (config, scope, entity, principal)  # the principal's name is in the session's
        return await self._cache.get(key, lambda: self._counted(self._ask(config, scope, principal)))

    def _allows(self, config: StorageConfig) -> bool:
        """Whether the operator's policy allows a storage configuration; if not, logs why."""
        try:
            self._policy.check_use(config)
        except BadRequest as error:
            _LOG.error("No access to files is given, because a storage configuration is not allowed: %s", error.message)
            return False
        return True

    async def _narrow_keys(
        self, config: AwsStorage, scope: Scope, entity: str, principal: str, checked: CheckedRequest
    ) -> Credentials | None:
        """Returns the keys of the credential for the scope if exactly one is issued, and otherwise keys for the folders
        of the request alone; None if none can be issued for these, or if no policy can name one of them. Raises
        `Forbidden` for a request that would need more than one credential, and the errors of `_issued`."""
        if not checked.locations <= {*chain(*grouped([*checked.locations], config, write=scope.write))}:
            return None
        issued = await self._issued(config, scope, entity, principal)
        if len(issued) != 1:  # several, each for one folder; or none for this one
            scope = Scope.of(sorted(checked.locations, key=lambda location: location.uri), write=scope.write)
            issued = await self._issued(config, scope, entity, principal)
        if len(issued) > 1:
            raise Forbidden("Not signed: DeleteObjects has keys in more than one location: send one request for each")
        return session_keys(issued[0]) if issued else None

    async def _own_keys(self, config: AwsStorage, checked: CheckedRequest) -> Credentials:
        """Returns the server's own AWS credentials for signing a request. Raises `Forbidden` if only one key of the
        pair is configured, or they must not sign this request for this store, and the errors of `own_credentials`, such
        as `CredentialsRefused` without any."""
        if self._issuers.signer is None:
            raise Forbidden(
                "Not signed: only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set on this server: the "
                "operator must set both, or neither"
            )
        # The sender of a request chooses the server that gets the signature, not the catalog's configuration: it can
        # send the request to any host of the key's owner.
        if config.is_amazon and not self._issuers.signer_of_amazon:
            raise Forbidden(
                "Not signed: the store of this catalog is Amazon's S3, and the endpoint of this server is another "
                "store's (AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL), with credentials for that one"
            )
        if checked.bucket_in_host and not config.is_amazon:
            raise Forbidden(
                "Not signed: the bucket is in the host name, which a store that is not Amazon's may read otherwise: "
                "set pathStyleAccess to true in the catalog's storage configuration"
            )
        if checked.could_become_another and not (config.is_amazon or self._issuers.strict_signatures):
            raise Forbidden(
                f"Not signed: for {checked.operation} the store might accept headers and bodies that are not signed. "
                f"An operator who knows that it refuses them sets {VENDING_STRICT_SIGNATURES.name}=true"
            )
        with self._counting_failures():
            return await own_credentials(self._issuers.signer.current(), "AWS", "sign")

    async def _counted(self, pending: Awaitable[tuple[StorageCredential, ...]]) -> tuple[StorageCredential, ...]:
        """Returns the issued credentials, longest prefix first, and counts the outcome, of a failure too; logs an error
        for `CredentialsRefused`. Raises the errors of `pending`."""
        with self._counting_failures():
            issued = longest_first(await pending)
        self._count(Outcome.ISSUED if issued else Outcome.NONE)
        return issued

    @contextmanager
    def _counting_failures(self) -> Iterator[None]:
        """Counts `CredentialsRefused` and `Unavailable` that are raised inside, and raises them again; logs the former
        as an error."""
        try:
            yield
        except CredentialsRefused as error:
            self._count(Outcome.REFUSED)
            _LOG.error(
                "A client got no credentials for files, or no signature, and an operator must act: %s", error.message
            )
            raise
        except Unavailable:
            self._count(Outcome.UNAVAILABLE)
            raise

    async def _ask(self, config: StorageConfig, scope: Scope, principal: str) -> tuple[StorageCredential, ...]:
        """Has credentials issued by the issuer for this kind of storage. Returns none without one, or if the operator's
        policy does not allow the configuration."""
        issuers = self._issuers
        if not self._allows(config):
            return ()
        match config:
            case AwsStorage() if issuers.s3 is not None:
                return await issuers.s3.issue(config, scope, principal)
            case GcpStorage() if issuers.gcs is not None:
                return await issuers.gcs.issue(config, scope, principal)
            case AzureStorage() if issuers.azure is not None:
                return await issuers.azure.issue(config, scope, principal)
            case AwsStorage() | GcpStorage() | AzureStorage() | FileStorage():
                return ()


def signing_properties(path: str) -> Mapping[str, str]:
    """Returns the properties by which clients request signatures at `path`, relative to their URI of the catalog: all
    of them use that URI where no `signer.uri` is set.

    Iceberg 1.10 reads `s3.signer.*`, 1.11 `signer.*`. 1.12 reads neither, and computes the path where
    `s3.remote-signing-enabled` is true.
    PyIceberg reads `s3.signer` and `s3.signer.endpoint`.
    """
    return {
        "s3.remote-signing-enabled": "true",
        "s3.signer": "S3V4RestSigner",
        "s3.signer.endpoint": path,
        "signer.endpoint": path,
    }
