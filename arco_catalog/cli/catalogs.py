"""`arco catalogs`: lists, creates, shows, updates, drops and undrops the catalogs of a realm, by the operations of the
management API, directly at the store."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError, NotThere
from arco_catalog.cli.finders import find_realm
from arco_catalog.cli.options import parse_pairs
from arco_catalog.cli.output import facts, table
from arco_catalog.cli.session import carry_out, open_session, operator_request
from arco_catalog.config.parsing import parse_warehouse
from arco_catalog.iceberg.errors import NotFound
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.environment import key_policy_from_env
from arco_catalog.operations.management.catalog_drops import end_catalog, remove_catalog
from arco_catalog.operations.management.catalogs import (
    BASE_LOCATION,
    CatalogRequest,
    CatalogUpdate,
    existing_catalog,
    get_catalog,
    list_catalogs,
    shown_catalog,
    storage_type_of,
)
from arco_catalog.operations.management.entities import load_keys
from arco_catalog.operations.realms import Realm, change_catalog, make_catalog
from arco_catalog.operations.stray_catalogs import (
    StrayCatalog,
    UndropRequest,
    find_stray,
    read_catalog,
    stray_catalogs,
    undrop_catalog,
)
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import mapping, text, texts
from arco_catalog.state.locations import Location
from arco_catalog.state.realm import catalog_key, find_catalog
from arco_catalog.vending.storage_config import parse_storage_config
from storage_backends.open import canonical_url

HEADINGS = ("NAME", "TYPE", "STORAGE", "DEFAULT BASE LOCATION")
STRAY_HEADINGS = ("FOLDER", "NAME", "LAST CHANGE (UTC)", "DEFAULT BASE LOCATION")
READS = ("list", "show")
_PAIRS = partial(parse_pairs, "--property", "owner=sales")


@dataclass(frozen=True, slots=True)
class CatalogArguments:
    """The arguments of an action of `arco catalogs` on one catalog. In an update or undrop None or an empty sequence
    leaves a value as it is; in a create it takes the default. `kind` is not for an update. `removed` are keys of
    properties that an update removes. With `cancel_purges` a drop cancels purges that have not begun. `root` is the
    folder with the state of the catalog to undrop."""

    kind: str | None
    base: str | None
    locations: Sequence[str]
    storage: str | None
    properties: Sequence[str]
    removed: Sequence[str]
    cancel_purges: bool = False
    root: str | None = None

    @property
    def has_changes(self) -> bool:
        """Whether an update has something to change: these arguments give a base location, other locations, a storage
        configuration, properties, or keys to remove."""
        return bool(self.base or self.locations or self.storage or self.properties or self.removed)


def run(
    options: CatalogOptions,
    action: str,
    name: str | None,
    arguments: CatalogArguments,
    *,
    dropped: bool = False,
    as_json: bool,
) -> int:
    """Carries out the action (list, create, show, update, drop or undrop) and displays the result. A list shows the
    realm's catalogs, or with `dropped` the states of catalogs that have no name in it; all other actions need a `name`.
    Returns 0; 1 if a dropped catalog can't be read, which is named on stderr. Raises `CliError`, as `NotThere` if there
    is no such catalog."""
    errors: dict[str, str] = {}

    async def work() -> JsonValue:
        async with open_session(options, f"catalogs {action}", find_realm, writes=action not in READS) as (
            realm,
            session,
        ):
            if action == "list" and dropped:
                strays = await stray_catalogs(realm, session)
                errors.update(strays.errors)
                return [_describe_stray(each) for each in strays.found]
            if name is None:
                return [shown_catalog(entry) for entry in await list_catalogs(session)]
            try:
                return await _carry_out_action(realm, session, options, action, name, arguments)
            except NotFound as error:
                raise NotThere(error.message) from error

    shown = carry_out(work)
    print(json_text(shown) if as_json else _as_text(action, shown, dropped=dropped))
    for root, error in errors.items():
        print(escaped(f"{root} can't be read: {error}"), file=sys.stderr)
    return 1 if errors else 0


async def _carry_out_action(
    realm: Realm, session: Session, options: CatalogOptions, action: str, name: str, arguments: CatalogArguments
) -> JsonObject:
    """Creates, shows, updates, undrops, or else drops a catalog, and returns it as JSON, a dropped or undropped one
    with the purges that were cancelled."""
    match action:
        case "create":
            policy = key_policy_from_env(options.environment)
            return await make_catalog(realm, session, _request(realm, options, name, arguments), key_policy=policy)
        case "show":
            return await get_catalog(session, name)
        case "update":
            return await _update(realm, session, options, name, arguments)
        case "undrop":
            return await _undrop(realm, session, options, name, arguments)
        case _:
            entry = existing_catalog(await load_keys(session, [catalog_key(name)]), name)
            request = operator_request(session.runtime, "catalogs drop")
            opened = realm.catalog(entry).session(request, ALLOW_ALL)
            cancelled = await end_catalog(opened, entry, cancel_purges=arguments.cancel_purges)
            await remove_catalog(session, entry)
            return {**shown_catalog(entry), "cancelledPurges": [*cancelled]}


async def _undrop(
    realm: Realm, session: Session, options: CatalogOptions, name: str, arguments: CatalogArguments
) -> JsonObject:
    """Undrops the catalog that `_stray` finds, with the type, the properties and the storage that the arguments give,
    and returns it with the purges that were cancelled. If the state has no record of the catalog, the storage type is
    by default that of the given base location."""
    properties: dict[str, JsonValue] = {**_PAIRS(arguments.properties)}
    if arguments.base is not None:
        properties[BASE_LOCATION] = canonical_url(arguments.base, options.environment)
    storage = {
        **({"allowedLocations": _locations(options, arguments)} if arguments.locations else {}),
        **_object(arguments.storage),
    }
    stray = await _stray(realm, session, name, arguments.root)
    base = properties.get(BASE_LOCATION)
    if stray.state.catalog is None and isinstance(base, str):
        storage = {"storageType": storage_type_of(Location.parse(base)), **storage}
    request = UndropRequest(name, arguments.kind, properties, storage)
    result = await undrop_catalog(realm, session, stray, request)
    return {**result.catalog, "cancelledPurges": [*result.cancelled_purges]}


async def _stray(realm: Realm, session: Session, name: str, root: str | None) -> StrayCatalog:
    """Finds the catalog to undrop: the one with this `root`; else the one that has the name in the realm, if an
    interrupted drop left its state closed; else the only catalog that was dropped under this name, of those that can be
    read, and of the first one of a bootstrap. Raises `NotThere` if there is none, `CliError` if there are more,
    `InternalError` if the one with the name or that first one can't be read, and for a `root` the errors of
    `find_stray`, such as `NotFound`."""
    if root is not None:
        return await find_stray(realm, session, root)
    named = find_catalog(await load_keys(session, [catalog_key(name)]), name)
    closed = None if named is None else await read_catalog(session, named.root)
    if closed is not None and closed.state.is_closed:
        return closed
    strays = await stray_catalogs(realm, session)
    found = [each for each in strays.found if each.name == name]
    first = await read_catalog(session, realm.first_root(name))
    if first is not None and first.name == name:  # it has this name only as long as it is closed
        found.append(first)
    if len(found) == 1:
        return found[0]
    if not found:
        beside = f", {len(strays.errors)} of which can't be read" if strays.errors else ""
        raise NotThere(
            f"there is no dropped catalog {name!r} in this realm: `arco catalogs list --dropped` lists the dropped "
            f"catalogs{beside}"
        )
    raise CliError(
        f"nothing was changed, because several dropped catalogs had the name {name!r}: choose one by --folder "
        f"{' or '.join(e.root for e in found)}"
    )


def _describe_stray(stray: StrayCatalog) -> JsonObject:
    """Returns a dropped catalog as JSON: its folder, name and last change, whether its state is closed, and its
    properties and storage configuration."""
    recorded = stray.state.catalog or {}
    return {
        "folder": stray.root,
        "name": stray.name,
        "closed": stray.state.is_closed,
        "lastChange": stray.head.at_ms,
        "properties": mapping(recorded, "properties"),
        "storageConfigInfo": mapping(recorded, "storage"),
    }


def _request(realm: Realm, options: CatalogOptions, name: str, arguments: CatalogArguments) -> CatalogRequest:
    """Returns the request for a new catalog that the arguments describe, of the type INTERNAL and in the default base
    location unless they give others. Raises `CliError`, `ValueError` or `BadRequest` for invalid arguments."""
    base = _default_base(realm, name) if arguments.base is None else canonical_url(arguments.base, options.environment)
    properties = {**_PAIRS(arguments.properties), BASE_LOCATION: base}
    storage = {
        "storageType": storage_type_of(Location.parse(base)),
        "allowedLocations": _locations(options, arguments),
        **_object(arguments.storage),
    }
    parse_storage_config(storage)
    return CatalogRequest(name, arguments.kind or "INTERNAL", properties, storage)


def _default_base(realm: Realm, name: str) -> str:
    """Returns the default base location of a new catalog: the folder of that name in the realm's folder. Raises
    `CliError` if the name can't be a folder."""
    try:
        return realm.deployment.base.below(realm.prefix, parse_warehouse(name)).uri
    except ValueError as error:
        raise CliError(
            f"the catalog {name!r} was not made: the name can't be that of a folder, and without another location the "
            "tables would lie there: give --default-base-location"
        ) from error


async def _update(
    realm: Realm, session: Session, options: CatalogOptions, name: str, arguments: CatalogArguments
) -> JsonObject:
    """Changes the properties and storage that the arguments give, removes the properties that they name for that, and
    returns the changed catalog. A null in the JSON of the storage removes a field. Raises `CommitFailed` if another
    change of the catalog commits between the read and the write, `NotFound` if there is no such catalog, and
    `ValueError`, `BadRequest` or `CliError` for invalid arguments."""
    entry = existing_catalog(await load_keys(session, [catalog_key(name)]), name)
    properties = {key: str(value) for key, value in entry.properties.items() if key not in arguments.removed}
    properties |= _PAIRS(arguments.properties)
    if arguments.base is not None:
        properties[BASE_LOCATION] = canonical_url(arguments.base, options.environment)
    storage = {**entry.storage, **({"allowedLocations": _locations(options, arguments)} if arguments.locations else {})}
    storage = {key: value for key, value in {**storage, **_object(arguments.storage)}.items() if value is not None}
    parse_storage_config(storage)
    update = CatalogUpdate(name, entry.entity, entry.version, properties, storage, account_may_change=True)
    return await change_catalog(realm, session, update)


def _locations(options: CatalogOptions, arguments: CatalogArguments) -> list[JsonValue]:
    """Returns the allowed locations of the arguments, as canonical URLs."""
    return [canonical_url(url, options.environment) for url in arguments.locations]


def _object(document: str | None) -> JsonObject:
    """Parses the value of --storage-config; none is an empty object. Raises `CliError` unless it is a JSON object."""
    try:
        parsed = json.loads(document or "{}")
    except ValueError as error:
        raise CliError(f"--storage-config takes a JSON object, and the value is not valid JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise CliError(
            '--storage-config takes a JSON object, such as \'{"roleArn": "arn:aws:iam::..."}\': the value is other JSON'
        )
    return parsed


def _as_text(action: str, shown: JsonValue, *, dropped: bool) -> str:
    """Formats the result of an action: a list of catalogs, one catalog, or one line about a change, with a line for
    every purge that it cancelled. Raises `TypeError` for any other JSON."""
    match shown:
        case list():
            found = [each for each in shown if isinstance(each, dict)]
            if dropped:
                return table(STRAY_HEADINGS, [*map(_stray_columns, found)]) if found else "No catalog here was dropped."
            return table(HEADINGS, [*map(_columns, found)]) if found else "This realm has no catalogs."
        case dict():
            done = {"create": "Made", "update": "Changed", "drop": "Dropped", "undrop": "Restored"}.get(action)
            if done is None:
                return _facts(shown)
            return "\n".join([escaped(f"{done} catalog {shown.get('name')!r}."), *_cancelled(shown)])
    raise TypeError(f"the result of `arco catalogs {action}` is neither a catalog nor a list of catalogs: {shown!r}")


def _cancelled(shown: JsonObject) -> Sequence[str]:
    """Returns a line for each table whose purge the drop or undrop of a catalog cancelled."""
    return [
        escaped(f"The purge of {table} was cancelled: its files stay.") for table in texts(shown, "cancelledPurges")
    ]


def _columns(shown: JsonObject) -> tuple[str, ...]:
    """Returns a catalog's row in the list of catalogs: the name, the type, the type of the storage, and the base
    location."""
    storage = mapping(shown, "storageConfigInfo")
    base = mapping(shown, "properties").get(BASE_LOCATION)
    return text(shown, "name"), text(shown, "type"), format_text(storage.get("storageType")), format_text(base)


def _stray_columns(shown: JsonObject) -> tuple[str, ...]:
    """Returns a dropped catalog's row in the list of dropped catalogs: the folder, the name, the time of the last
    change, and the base location."""
    base = mapping(shown, "properties").get(BASE_LOCATION)
    name = format_text(shown.get("name"))
    return text(shown, "folder"), name, format_time(shown.get("lastChange")), format_text(base)


def _facts(shown: JsonObject) -> str:
    """Formats everything that `arco catalogs show` writes of a catalog."""
    storage, properties = mapping(shown, "storageConfigInfo"), mapping(shown, "properties")
    lines = [
        ("name", text(shown, "name")),
        ("type", text(shown, "type")),
        ("version", format_text(shown.get("entityVersion"))),
        ("made", format_time(shown.get("createTimestamp"))),
        ("changed", format_time(shown.get("lastUpdateTimestamp"))),
        ("base location", format_text(properties.get(BASE_LOCATION))),
        *(("allowed location", location) for location in texts(storage, "allowedLocations")),
        *(("storage", f"{key}={format_text(value)}") for key, value in storage.items() if key != "allowedLocations"),
        *(("property", f"{key}={format_text(value)}") for key, value in properties.items() if key != BASE_LOCATION),
    ]
    return facts(lines)
