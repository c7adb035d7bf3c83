"""Vends credentials for the files of one table as the catalog does, and uses them on the table and beside it."""

from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.state.locations import Location
from arco_catalog.state.paths import Paths
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.vending.configured import configured_vending
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.storage_config import AwsStorage, AzureStorage, GcpStorage, StorageConfig
from storage_backends import ANY, ObjectStore, StoreDenied
from storage_backends.open import open_store
from storage_backends.s3.config import S3Config
from tools.smoke_cloud.steps import StepSkipped, require

_VARIABLES: Mapping[str, str] = {
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
    "gcs.oauth2.token": "GOOGLE_OAUTH_ACCESS_TOKEN",
    "adls.sas-token": "AZURE_STORAGE_SAS_TOKEN",
}
"""The variables that a store reads in place of a vended property."""
_OWN = ("AWS_PROFILE", "AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING", "GOOGLE_APPLICATION_CREDENTIALS")
"""Variables with credentials of one's own, which the vended ones replace."""


@dataclass(frozen=True)
class VendingOptions:
    """What a cloud needs besides the keys of the environment: on AWS a role that may be assumed; on Azure the tenant,
    for accounts with a hierarchical namespace."""

    aws_role_arn: str | None = None
    azure_tenant_id: str | None = None


def storage_of(scheme: str, environment: Mapping[str, str], options: VendingOptions) -> StorageConfig:
    """Returns the storage configuration of a catalog in the store. Raises `StepSkipped` without a needed option."""
    if scheme == "s3":
        if options.aws_role_arn is None:
            raise StepSkipped("needs --aws-role-arn: a role that these keys may assume")
        config = S3Config.from_environment(environment)
        endpoint = config.endpoint_url
        return AwsStorage(options.aws_role_arn, region=config.region, endpoint=endpoint, sts_endpoint=endpoint)
    if scheme == "gs":
        return GcpStorage()
    if options.azure_tenant_id is None:
        raise StepSkipped("needs --azure-tenant-id, and an account with a hierarchical namespace")
    return AzureStorage(options.azure_tenant_id, hierarchical=True)


async def use_vended(root: str, location: str, environment: Mapping[str, str], options: VendingOptions) -> str:
    """Vends credentials for a table in the store at `root`, writes, reads and deletes an object in the table, and tries
    the same beside it. Returns what was found. Raises `StepSkipped` if nothing can be vended here, and `StepFailed` if
    they reach further than the table."""
    config = storage_of(root.partition(":")[0], environment, options)
    vending = configured_vending(environment, SystemRuntime(), lambda outcome: None)
    scope = Scope.of([Location.parse(location)], write=True)
    try:
        issued = await vending.credentials(config, scope, "smoke", "smoke")
    finally:
        await vending.close()
    if not issued:
        raise StepSkipped("these keys can't vend: see docs/locations.md")
    vended = {name: issued[0].config[key] for key, name in _VARIABLES.items() if key in issued[0].config}
    theirs = {
        name: value for name, value in environment.items() if name not in _OWN and name not in _VARIABLES.values()
    }
    store = open_store(root, {**theirs, **vended})
    try:
        inside = f"{location}/data/vended".removeprefix(root).lstrip("/")
        await store.put(inside, b"vended", ANY)
        await store.get(inside)
        await store.delete(inside)
        catalog = inside.partition("/")[0]
        for name in ("beside", f"{catalog}/{Paths(catalog).folder}/vended"):
            await _refused(store, name)
    finally:
        await store.close()
    seconds = (issued[0].expires_ms - SystemRuntime().now_ms()) // 1_000
    return f"they reach the table and nothing beside it, for {seconds:,} s"


async def _refused(store: ObjectStore, key: str) -> None:
    reached = []
    try:
        await store.put(key, b"vended", ANY)
        reached.append("write")
        await store.delete(key)
    except StoreDenied:
        pass
    try:
        await store.get(key)
        reached.append("read")
    except StoreDenied:
        pass
    require(not reached, f"the vended credentials may {' and '.join(reached)} {key}, beside the table")
