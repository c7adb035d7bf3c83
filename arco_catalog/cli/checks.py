"""The checks of `arco doctor` for a store with a catalog or realm, in order. A check that needs the result of a failed
one is skipped."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_root_catalog
from arco_catalog.cli.left_out import LeftOut
from arco_catalog.cli.session import open_session
from arco_catalog.iceberg.errors import CatalogError, InternalError, NotFound
from arco_catalog.operations.catalogs import DeployedCatalog, deployed_catalogs
from arco_catalog.operations.contents import sibling_catalogs
from arco_catalog.operations.open import WITHOUT_CONDITIONAL_DELETE
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.store_clock import MAX_CORRECTION_MS, PRECISION_MS
from storage_backends import StoreDenied, StoreError
from storage_backends.open import canonical_url
from storage_backends.probe import honours_conditions

TIMEOUT_MS = 20_000
"""Maximum time of the store for all checks together."""
SLIGHT_SKEW_MS = 2 * PRECISION_MS
AZURE_RIGHTS = (
    "give it the role Storage Blob Data Contributor on the container, or a signature with sp=racwdl; check the "
    "account's firewall"
)
GCS_RIGHTS = "give it storage.objects.get, create, delete and list on the bucket (roles/storage.objectUser has them)"
FSCK = "`arco fsck` has the details, docs/recovery.md the steps"
LEAST_RIGHTS = "give it s3:GetObject, s3:PutObject, s3:DeleteObject on the prefix and s3:ListBucket on the bucket"


class Status(StrEnum):
    """The result of a check of `arco doctor`: passed, a warning, failed, or not made."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Check:
    """A check of `arco doctor` that was made or skipped: its name and result, what was found, and what the user can do
    about it."""

    name: str
    status: Status
    found: str
    advice: str | None = None


class Checks:
    """Runs the checks of `arco doctor` on a store: on its catalog, or on all catalogs of its realm. They make no
    catalog: conditional writes are tried only if there is a catalog or a realm, or --realm names one."""

    def __init__(self, options: CatalogOptions) -> None:
        self._options = options
        self._s3 = options.store.startswith("s3:")
        self._gcs = options.store.startswith("gs:")
        self._azure = is_azure(options.store)
        self._done: list[Check] = []

    async def run(self) -> list[Check]:
        """Runs the checks of `arco doctor` on the store and its catalogs, and returns the results in order. A check
        that a failure before makes impossible has the status `SKIPPED`; the checks of the credentials and of allowed
        locations are left out instead. A failed one raises nothing. Raises `CliError` for a malformed URL of an allowed
        location."""
        self._done = [packages(self._options.store)]
        if self._done[0].status is not Status.FAILED:
            self._done.append(await self._check_credentials())
            try:
                async with open_session(
                    self._options, "doctor", find_root_catalog, TIMEOUT_MS, tolerates_read_errors=True
                ) as session:
                    await self._check_store(session)
            except (CatalogError, ValueError) as error:
                self._done.append(Check("store", Status.FAILED, str(error), "correct --store or --allowed-location"))
        self._skip("store", "clock", "catalog", "conditional writes")
        return self._done

    def _skip(self, *names: str) -> None:
        """Records checks as skipped, except the ones that were made."""
        known = {check.name for check in self._done}
        self._done += [Check(name, Status.SKIPPED, "a check before it failed") for name in names if name not in known]

    async def _check_credentials(self) -> Check:
        """Checks the credentials for the store: of Azure, Google or AWS, or for a folder the permissions."""
        if self._azure:
            return await azure_credentials(self._options)
        if self._gcs:
            return await gcs_credentials(self._options)
        if not self._s3:
            return permissions(self._options.store)
        from storage_backends.s3.config import S3Config
        from storage_backends.s3.credentials import credentials_of, region_of

        try:
            config = S3Config.from_environment(self._options.environment)
            keys = await credentials_of(config.credentials).current()
            region = await region_of(config)
        except (StoreError, ValueError) as error:
            return Check("credentials", Status.FAILED, str(error), "set AWS_PROFILE, or keys and AWS_REGION")
        where = f"region {region}" + (f", endpoint {config.endpoint_url}" if config.endpoint_url else "")
        return Check("credentials", Status.OK, f"access key {keys.access_key[:4]}..., {where}")

    async def _check_store(self, session: Session) -> None:
        """Records whether the store can be listed and HEAD can be read, and if so the checks that need this: the clock,
        the realm or catalog, conditional writes (not tried without a realm or a valid HEAD of the catalog) and the
        allowed locations. A realm that does not exist or can't be read is the last check."""
        store = session.state.store
        missing = missing_folder(self._options.store)
        if missing is not None:
            found = f"there is no folder {missing}"
            self._done.append(Check("store", Status.FAILED, found, "check --store; `arco init` makes a new one"))
            return
        begun_ms = session.runtime.now_ms()
        try:
            await store.list("")
            head = await _head(session)
        except StoreDenied as error:
            self._done.append(Check("store", Status.FAILED, str(error), denied(str(error), self._options.store)))
            return
        except StoreError as error:
            advice = "check the folder"
            if self._s3 or self._gcs or self._azure:
                advice = f"check network, endpoint and that the {'container' if self._azure else 'bucket'} is there"
            self._done.append(Check("store", Status.FAILED, str(error), advice))
            return
        took_ms = session.runtime.now_ms() - begun_ms
        self._done.append(Check("store", Status.OK, f"{self._options.store} answered two calls in {took_ms:,} ms"))
        self._done.append(clock(session.now_ms() - session.runtime.now_ms()))
        try:
            deployed = await self._of_realm(session)
        except (NotFound, InternalError, StoreError) as error:
            self._done.append(_unread_realm(error, self._options.store))
            return
        if deployed is not None:
            self._done += deployed
            self._done.append(await conditional_writes(session, self._options.store))
        elif isinstance(head, Check):
            self._done.append(head)
        elif head.version is None:
            self._done.append(await self._no_catalog(session))
            self._done.append(
                Check(
                    "conditional writes",
                    Status.SKIPPED,
                    "nothing is written where no catalog is",
                    "`arco init` tries them",
                )
            )
        else:
            found = f"warehouse {self._options.warehouse!r}; changes of names so far: {head.sequence:,}"
            self._done.append(Check("catalog", Status.OK, found))
            self._done.append(await conditional_writes(session, self._options.store))
        await self._check_allowed_locations(session)

    async def _no_catalog(self, session: Session) -> Check:
        """Returns the failed check for a store without the warehouse, also if the store's other catalogs can't be
        listed."""
        try:
            others = await sibling_catalogs(session.state.store, session.state.paths.root)
        except StoreError as error:
            return Check("catalog", Status.FAILED, f"{_lacks(self._options)}; others cannot be listed: {error}")
        return no_catalog(self._options, others)

    async def _of_realm(self, session: Session) -> list[Check] | None:
        """Returns a check for each catalog of the realm, whose HEAD is read, or one warning if the realm has no
        catalog; None if the options name no realm and there is none at the root of the store. Raises `NotFound` for a
        realm that the options name and that does not exist, and `StoreError` and `InternalError` if the registry of the
        realm can't be read."""
        options, name = self._options, "catalog"
        named = () if options.realm is None else (options.realm,)
        catalogs = await deployed_catalogs(session.catalog, canonical_url(options.store, options.environment), named)
        if [each.realm for each in catalogs] == [None]:
            return None
        found: list[Check] = []
        for each in catalogs:
            found.append(await _catalog(each, session))
        return found or [Check(name, Status.WARNING, "the realm has none", "`arco catalogs create` makes one")]

    async def _check_allowed_locations(self, session: Session) -> None:
        """Records for each additional allowed location whether it can be listed."""
        for mount in session.catalog.mounts[1:]:
            name = "allowed location"
            try:
                await mount.store.list("")
            except StoreError as error:
                advice = (
                    denied(str(error), mount.root.uri) if isinstance(error, StoreDenied) else "check that it is there"
                )
                self._done.append(Check(name, Status.FAILED, f"{mount.root.uri}: {error}", advice))
            else:
                self._done.append(Check(name, Status.OK, f"{mount.root.uri} can be listed"))


async def _catalog(deployed: DeployedCatalog, session: Session) -> Check:
    """Returns the check that a catalog of the realm can be opened, and its HEAD read: a failed one, with the error and
    advice, if not."""
    try:
        head = await deployed.open().session(session.request, ALLOW_ALL).state.head()
    except InternalError as error:
        left_out = LeftOut.of(deployed, error)
        return Check("catalog", Status.FAILED, f"{deployed.name}: {error}", left_out.advice)
    except (CatalogError, StoreError) as error:
        return Check("catalog", Status.FAILED, f"{deployed.name}: {error}", "give the server's --allowed-location")
    return Check("catalog", Status.OK, f"{deployed.name!r}; changes of names so far: {head.sequence:,}")


def packages(store: str) -> Check:
    """Checks that uvicorn, uvloop and httptools are installed, which `arco serve` needs. Without httptools, which the
    clients of stores in a cloud need, the check fails for such a store; otherwise a missing package is a warning."""
    extra = "azure" if is_azure(store) else {"s3": "s3", "gs": "gcs"}.get(store.partition(":")[0])
    if extra is not None and find_spec("httptools") is None:
        advice = f"install the extra '{extra}' of arco-catalog"
        return Check("packages", Status.FAILED, f"httptools is not installed, which {store} needs", advice)
    missing = [module for module in ("uvicorn", "uvloop", "httptools") if find_spec(module) is None]
    if missing:
        found = f"{', '.join(missing)} not installed: `arco serve` will not start"
        return Check("packages", Status.WARNING, found, "install the extra 'serve' of arco-catalog")
    return Check("packages", Status.OK, "all that `arco serve` needs is installed")


def is_azure(store: str) -> bool:
    """Whether a URL names a container of Azure Blob Storage, by its scheme: abfss, abfs or az."""
    return store.partition(":")[0] in ("abfss", "abfs", "az")


async def azure_credentials(options: CatalogOptions) -> Check:
    """Checks the credentials for Azure: reads them from the environment, and authorizes a request, for which a token of
    Entra ID is fetched if there is neither a key nor a signature. Does not call the store. An error is not raised: the
    check fails with its text."""
    from storage_backends.azure.authorization import authorizer_of
    from storage_backends.azure.config import AzureConfig, SasToken, SharedKey
    from storage_backends.azure.endpoint import endpoint_of, place_of
    from storage_backends.url import StoreUrl
    from storage_backends.wire.exchange import Request

    try:
        place = place_of(StoreUrl.parse(options.store), AzureConfig.from_environment(options.environment))
        endpoint = endpoint_of(place.container, place.config)
        await authorizer_of(place.config.credentials, endpoint).authorize(Request("GET"), endpoint.path, {})
    except (StoreError, ValueError) as error:
        advice = "set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or log in by `az login`"
        return Check("credentials", Status.FAILED, str(error), advice)
    kinds = {SharedKey: "the account's key", SasToken: "a shared access signature"}
    kind = kinds.get(type(place.config.credentials), "a token of Entra ID")
    return Check("credentials", Status.OK, f"{kind}, {endpoint.url}, client {place.config.client}")


async def gcs_credentials(options: CatalogOptions) -> Check:
    """Checks the credentials for Google Cloud: reads them from the environment, and fetches a token, except for an
    emulator. Does not call the store. An error is not raised: the check fails with its text."""
    from storage_backends.gcs.config import GcsConfig
    from storage_backends.gcs.credentials import tokens_of

    try:
        config = GcsConfig.from_environment(options.environment)
        token = await tokens_of(config).current()
    except (StoreError, ValueError) as error:
        advice = "set GOOGLE_APPLICATION_CREDENTIALS, or log in by `gcloud auth application-default login`"
        return Check("credentials", Status.FAILED, str(error), advice)
    kind = "a token of Google's" if token else "none, for an emulator"
    return Check("credentials", Status.OK, f"{kind}, {config.endpoint}, client {config.client}")


def folder_of(store: str) -> str | None:
    """Returns the folder of a store of local files, None for other stores."""
    return unquote(urlsplit(store).path) if store.startswith("file:") else None


def missing_folder(store: str) -> str | None:
    """Returns the folder of a store of local files if it does not exist, else None."""
    folder = folder_of(store)
    return folder if folder is not None and not os.path.isdir(folder) else None


def permissions(store: str) -> Check:
    """Checks, for a store that needs no credentials, that the user may read and write the folder of the store. Passes
    without a test if there is no such folder, or the store is in memory."""
    folder = folder_of(store)
    if folder is None or not os.path.isdir(folder):
        return Check("credentials", Status.OK, "none are needed")
    if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Check("credentials", Status.OK, f"{folder} may be read and written")
    owner = f"user {os.geteuid()}"
    return Check("credentials", Status.FAILED, f"{owner} may not write to {folder}", f"chown or chmod it for {owner}")


def clock(behind_ms: int) -> Check:
    """Checks the difference of this machine's clock from the store's, in milliseconds that it is behind (negative:
    ahead). It is ok below `SLIGHT_SKEW_MS`, a warning above, and fails if it is too large for the catalog to
    correct."""
    skew, side = abs(behind_ms), "behind" if behind_ms > 0 else "ahead of"
    if skew < SLIGHT_SKEW_MS:
        return Check("clock", Status.OK, "this machine and the store agree on the time")
    found = f"this machine's clock is {skew / 1000:,.1f} s {side} the store's"
    status = Status.WARNING if skew < MAX_CORRECTION_MS else Status.FAILED
    return Check("clock", status, found, "set the clock (chrony, ntpd): engines refuse metadata from the future")


def _unread_realm(error: CatalogError | StoreError, store: str) -> Check:
    """Returns the failed check of the catalogs of a realm that does not exist, or whose registry can't be read."""
    match error:
        case NotFound():
            return Check("catalog", Status.FAILED, error.message, "check --realm")
        case InternalError():
            return Check("catalog", Status.FAILED, error.message, FSCK)
        case StoreDenied():
            return Check("catalog", Status.FAILED, str(error), denied(str(error), store))
    return Check("catalog", Status.FAILED, str(error), "try again")


async def _head(session: Session) -> RegistryState | Check:
    """Reads HEAD of the catalog's registry, or returns a failed check if it can't be parsed."""
    try:
        return await session.state.head()
    except InternalError as error:
        return Check("catalog", Status.FAILED, error.message, FSCK)


def no_catalog(options: CatalogOptions, others: Sequence[str]) -> Check:
    """Returns the failed check for a store without the warehouse; it lists the `others` that the store has."""
    found = _lacks(options)
    if others:
        return Check("catalog", Status.FAILED, found, f"it has {', '.join(others)}: give --warehouse")
    return Check("catalog", Status.FAILED, found, "`arco init` makes it, and so does the first write of `arco serve`")


def _lacks(options: CatalogOptions) -> str:
    """Returns the finding about a warehouse that is not there."""
    return f"there is no warehouse {options.warehouse!r} in {options.store}"


async def conditional_writes(session: Session, store: str) -> Check:
    """Checks that the store honours conditional writes, as `arco serve` does at the start: by writes under two names in
    `_probe/`, where it leaves no object. Fails if the store ignores conditions or can't be written to. A store without
    conditional deletes passes."""
    name = "conditional writes"
    try:
        verdict = await honours_conditions(session.state.store, session.runtime.ulid())
    except StoreDenied as error:
        return Check(name, Status.FAILED, str(error), denied(str(error), store))
    except StoreError as error:
        return Check(name, Status.FAILED, str(error), "try again; docs/stores.md lists stores that were tried")
    if not verdict.honoured:
        found = f"commits would get lost: {verdict.reason}"
        return Check(name, Status.FAILED, found, "take another store: docs/stores.md lists those that were tried")
    if not verdict.conditional_delete:
        return Check(name, Status.OK, f"kept, without {WITHOUT_CONDITIONAL_DELETE}")
    return Check(name, Status.OK, "kept: what is refused is not written")


def denied(reason: str, store: str = "s3:") -> str:
    """Returns advice for a store that denies access, chosen by the scheme of its URL and by words in the reason that it
    gives."""
    if store.startswith("file:"):
        return "let the user of this command read and write the folder"
    if store.startswith("gs:"):
        return GCS_RIGHTS
    if "TimeTooSkewed" in reason:
        return "set this machine's clock (chrony, ntpd)"
    if "InvalidAccessKeyId" in reason or "SignatureDoesNotMatch" in reason:
        return "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
    if "AuthenticationFailed" in reason:
        return "check AZURE_STORAGE_ACCOUNT and its key or signature, and this machine's clock"
    return AZURE_RIGHTS if is_azure(store) else LEAST_RIGHTS
