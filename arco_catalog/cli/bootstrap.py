"""`arco bootstrap`: makes a realm with a root principal in a store, with the catalog of --warehouse, which may be there
already; or replaces the credentials of the root principal."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.authentication.secrets import Secrets, new_client_id, new_secret
from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_new_realm
from arco_catalog.cli.session import carry_out, open_session
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.catalogs import realm_exists
from arco_catalog.operations.environment import key_policy_from_env
from arco_catalog.operations.management.bootstrap import bootstrap
from arco_catalog.operations.management.catalogs import BASE_LOCATION, CatalogRequest, locations_of, storage_type_of
from arco_catalog.operations.management.principals import ROOT_PRINCIPAL, NewCredentials, change_credentials
from arco_catalog.operations.realms import Realm, make_catalog
from arco_catalog.operations.stray_catalogs import UndropRequest, read_catalog, undrop_catalog
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.characters import escaped
from arco_catalog.state.key_settings import KeyPolicy
from arco_catalog.state.locations import Location
from arco_catalog.state.paths import DEFAULT_REALM
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import StoreError
from storage_backends.open import canonical_url

TENANT = "AZURE_TENANT_ID"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The client id and secret of a realm's root principal, which are printed once. The realm stores only a hash of the
    secret."""

    client_id: str
    secret: str


def run(options: CatalogOptions, *, reset_root: bool, reopen: bool, as_json: bool) -> int:
    """Bootstraps a realm with a root principal and the catalog of --warehouse, with `reopen` even a realm that was
    dropped. With `reset_root` it only replaces the credentials of the root principal. Prints the credentials, this
    once. Returns 0. Raises `CliError`, also for a store in memory."""
    if options.store.startswith("memory:"):
        raise CliError(
            "no realm was made: a store in memory is gone when this command ends; give a store that stays by --store, "
            "such as file:/path or s3://bucket"
        )

    async def work() -> Credentials:
        async with open_session(options, "bootstrap", find_new_realm, writes=True, creates=True) as (realm, session):
            return await (_reset(session) if reset_root else _bootstrap(realm, session, options, reopen=reopen))

    made = carry_out(work)
    document: JsonObject = {"realm": options.realm, "client_id": made.client_id, "client_secret": made.secret}
    if as_json:
        print(json_text(document))
        return 0
    what = "The root principal has new credentials" if reset_root else f"Made a realm in {options.store}"
    print(escaped(f"{what}. They are shown this once:"))
    print(f"  client id      {made.client_id}\n  client secret  {made.secret}")
    print(f"Engines take them as credential={made.client_id}:{made.secret} from `arco serve --auth internal`.")
    return 0


async def _bootstrap(realm: Realm, session: Session, options: CatalogOptions, *, reopen: bool) -> Credentials:
    """Makes the realm and the first catalog, and returns the credentials of the root principal. Raises `CliError` for a
    realm when another one, even a dropped one, is at the root of the store, and if the realm was made, and the catalog
    was not; and the errors of `bootstrap`, as for a realm that exists, also if it is the one at the root."""
    if not realm.at_root and await realm_exists(Realm(DEFAULT_REALM, realm.deployment)):
        raise CliError(
            f"the realm {realm.name} was not made: there is a realm, perhaps a dropped one, at the root of "
            f"{options.store}, and such a store can have no other; leave out --realm to use that one"
        )
    root = realm.first_root(options.warehouse)
    location = realm.deployment.base.below(root, "warehouse")
    allowed: list[JsonValue] = [location.uri, *_allowed(options)]
    storage = {"allowedLocations": allowed, **storage_of(location, options)}
    request = CatalogRequest(options.warehouse, "INTERNAL", {BASE_LOCATION: location.uri}, storage)
    realm.check_locations(locations_of(request.properties, storage), storage)
    credentials, kept = await _credentials()
    await bootstrap(session, kept, reopen=reopen)
    try:
        await _take_catalog(realm, session, request, root, key_policy_from_env(options.environment))
    except (CatalogError, StoreError) as error:
        raise CliError(
            f"the realm was made, but its catalog {request.name} was not, or not completely: {error}. Get other "
            "credentials by `arco bootstrap --reset-root`, and make the catalog by `arco catalogs create`, or, if its "
            "tables were in the store before, by `arco catalogs undrop`"
        ) from error
    return credentials


async def _take_catalog(
    realm: Realm, session: Session, request: CatalogRequest, root: str, key_policy: KeyPolicy
) -> None:
    """Makes the catalog of a new realm, or takes the one with this root into the realm, also one that was dropped.
    Raises the errors of `undrop_catalog` and `make_catalog`."""
    stray = await read_catalog(session, root)
    if stray is not None and stray.state.is_closed:
        again = UndropRequest(request.name, request.kind, {**request.properties}, request.storage)
        await undrop_catalog(realm, session, stray, again)
    else:
        # One that is taken into the realm has the record of its servers, or gets it from the next one that takes a key.
        policy = key_policy if stray is None else None
        await make_catalog(realm, session, request, root, owned=True, key_policy=policy)


def storage_of(location: Location, options: CatalogOptions) -> JsonObject:
    """Returns the storage configuration of a new catalog at a location: the storage type, and on Azure the tenant of
    AZURE_TENANT_ID. If that variable is not set, prints a warning on stderr, because engines then get no credentials
    for files. Raises the errors of `storage_type_of`."""
    kind = storage_type_of(location)
    if kind != "AZURE":
        return {"storageType": kind}
    tenant = options.environment.get(TENANT)
    if tenant:
        return {"storageType": kind, "tenantId": tenant}
    print(
        f"arco: the tenant of the storage account is missing ({TENANT}), without which engines get no access to files "
        "from this server; once the catalog is there, set it: "
        f'arco catalogs update {options.warehouse} --storage-config \'{{"tenantId": "..."}}\'',
        file=sys.stderr,
    )
    return {"storageType": kind}


async def _reset(session: Session) -> Credentials:
    """Gives the root principal new credentials, and returns them. The earlier secrets are invalid from then on."""
    credentials, kept = await _credentials()
    await change_credentials(session, ROOT_PRINCIPAL, lambda principal: kept, rotate=False)
    return credentials


async def _credentials() -> tuple[Credentials, NewCredentials]:
    """Makes new credentials, and returns them in two forms: for the user, and as the realm stores them. Stores
    nothing."""
    entropy = SystemRuntime().entropy
    client_id, secret = new_client_id(entropy), new_secret(entropy)
    return Credentials(client_id, secret), NewCredentials(client_id, await Secrets(entropy).keep(secret))


def _allowed(options: CatalogOptions) -> Sequence[str]:
    """Returns the additional allowed locations of the options, as canonical URLs."""
    return [canonical_url(url, options.environment) for url in options.allowed]
