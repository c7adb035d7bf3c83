"""What an object of a foreign realm would be here: its counterpart, as far as there is one, and what can't be taken
over of it, with the reason. Nothing is read or written here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from arco_catalog.cli.realm_objects import Kind, RealmObject
from arco_catalog.http.management.catalogs import TYPES
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.management.catalogs import (
    BASE_LOCATION,
    STORAGE_SCHEMES,
    check_storage,
    locations_of,
    with_base,
)
from arco_catalog.operations.management.entities import (
    CATALOG_CONFIG,
    MAX_PROPERTIES_BYTES,
    check_entity_name,
    check_entity_properties,
)
from arco_catalog.planning.privileges import GRANTABLE
from arco_catalog.state.fields import mapping, text, texts
from arco_catalog.state.locations import Location
from arco_catalog.vending.storage_config import parse_storage_config

FIELDS: Mapping[str, frozenset[str]] = {
    "S3": frozenset(
        {"roleArn", "externalId", "region", "endpoint", "endpointInternal", "stsEndpoint", "stsUnavailable"}
        | {"pathStyleAccess", "currentKmsKey", "allowedKmsKeys", "kmsUnavailable"}
    ),
    "GCS": frozenset({"gcsServiceAccount"}),
    "AZURE": frozenset({"tenantId", "hierarchical"}),
    "FILE": frozenset(),
}
"""The fields of a storage configuration that have a meaning here, besides its type and locations."""
OWN_FIELDS: Mapping[str, str] = {
    "userArn": "it names the user by which the other server assumes the role: let this server's role do so",
    "multiTenantAppName": "it is the other server's application: this server has its own",
    "consentUrl": "it is of the other server's application: this server has its own",
    "storageName": "it names a configuration at the other server",
}
SERVED = ("name", "type", "properties", "createTimestamp", "lastUpdateTimestamp", "entityVersion", "storageConfigInfo")


@dataclass(frozen=True, slots=True)
class Counterpart:
    """What an object would be here, None if there can't be such an object; and `left_out`, what of it would be missing
    or without an effect: pairs of a label such as `property a`, empty for the object itself, and the reason."""

    object: RealmObject | None
    left_out: Sequence[tuple[str, str]] = ()


def counterpart(source: RealmObject) -> Counterpart:
    """Returns what an object of a foreign realm would be here, as far as it can be, with the reasons for properties,
    and for fields of catalogs, that are left out or have no effect; without an object, and with the reason, for one
    that can't be here. Objects other than principals, roles, catalogs and grants are returned as they are."""
    try:
        match source.kind:
            case Kind.PRINCIPAL | Kind.PRINCIPAL_ROLE | Kind.CATALOG_ROLE:
                check_entity_name(source.names[-1], source.kind)
                return _entity(source)
            case Kind.CATALOG:
                check_entity_name(source.names[0], "catalog")
                return _catalog(source)
            case Kind.GRANT:
                return _grant(source)
            case _:
                return Counterpart(source)
    except BadRequest as error:
        return Counterpart(None, [("", error.message)])


def _entity(source: RealmObject) -> Counterpart:
    """Returns the counterpart of a principal or role: the properties that it can have here, and of a principal role
    whether it is federated."""
    properties, left_out = _properties(source.document, source.kind)
    document: JsonObject = {"properties": properties}
    if source.kind is Kind.PRINCIPAL_ROLE:
        document["federated"] = source.document.get("federated") is True
    return Counterpart(replace(source, document=document), left_out)


def _properties(document: JsonObject, what: str) -> tuple[JsonObject, list[tuple[str, str]]]:
    """Returns the properties that an object can have here, and with the reason those that it can't have. Those that it
    can have, but without an effect, are in both."""
    kept: JsonObject = {}
    left_out: list[tuple[str, str]] = []
    size = 0
    for name, value in mapping(document, "properties").items():
        label = f"property {name}"
        if not isinstance(value, str):
            left_out.append((label, "its value is no text"))
            continue
        size += len(name.encode()) + len(value.encode())
        try:
            check_entity_properties({name: value}, what)
        except BadRequest as error:
            left_out.append((label, error.message))
            continue
        if size > MAX_PROPERTIES_BYTES:
            left_out.append((label, f"the properties of a {what} may take {MAX_PROPERTIES_BYTES:,} bytes together"))
            continue
        if name.startswith(CATALOG_CONFIG):
            left_out.append((label, "it is a setting of Polaris: it is stored, and has no effect"))
        kept[name] = value
    return kept, left_out


def _catalog(source: RealmObject) -> Counterpart:
    """Returns the counterpart of a catalog, of the type INTERNAL if it names none, without fields that have no meaning
    here, and with the base location as an allowed one. Raises `BadRequest` for one that can't be here."""
    document = source.document
    kind = document.get("type", "INTERNAL")
    if kind not in TYPES:
        raise BadRequest(
            f"the type {kind!r} of the catalog at the source is unknown here: expected {' or '.join(TYPES)}"
        )
    if document.get("connectionConfigInfo") is not None:
        raise BadRequest(
            "the catalog is federated: the tables are another server's; import them from that server, or let it send "
            "notifications"
        )
    properties, left_out = _properties(document, "catalog")
    storage = mapping(document, "storageConfigInfo")
    of_type = storage.get("storageType")
    if not isinstance(of_type, str) or of_type not in STORAGE_SCHEMES:
        raise BadRequest(
            f"the catalog at the source names no storage type, or one that is unknown here ({of_type!r}): "
            f"expected {', '.join(STORAGE_SCHEMES)}"
        )
    kept: JsonObject = {"storageType": of_type, "allowedLocations": [*texts(storage, "allowedLocations")]}
    for name, value in storage.items():
        if name in FIELDS[of_type]:
            kept[name] = value
        elif name not in kept and value is not None:
            left_out.append((f"storage field {name}", OWN_FIELDS.get(name, "it has no meaning here")))
    left_out += [(f"field {name}", "it has no meaning here") for name in document if name not in SERVED]
    parse_storage_config(kept)
    locations = locations_of(properties, kept)
    check_storage(locations, kept)
    made: JsonObject = {"type": kind, "properties": properties, "storageConfigInfo": _normal(properties, kept)}
    return Counterpart(replace(source, document=made), left_out)


def _normal(properties: JsonObject, storage: JsonObject) -> JsonObject:
    """Returns a storage configuration in whose allowed locations the base location is included, each in canonical form
    and once."""
    listed = texts(with_base(properties, storage), "allowedLocations")
    locations: list[JsonValue] = [*dict.fromkeys(Location.parse(item).uri for item in listed)]
    return {**storage, "allowedLocations": locations}


def _grant(source: RealmObject) -> Counterpart:
    """Returns the counterpart of a grant. Raises `BadRequest` for a kind or privilege that is not here, and if the
    names are not those of an object of the kind."""
    _, _, kind, privilege, *levels = source.names
    grantable = GRANTABLE.get(kind)
    if grantable is None:
        raise BadRequest(
            f"the grant at the source is on the type {kind!r}, on which no privilege can be granted here: expected "
            f"{', '.join(GRANTABLE)}"
        )
    if privilege not in grantable:
        raise BadRequest(
            f"the grant at the source has {privilege!r}, which is no privilege that can be granted here on a {kind}"
        )
    lowest = {"catalog": 0, "namespace": 1}.get(kind, 2)
    if len(levels) < lowest or (kind == "catalog" and levels) or not all(levels):
        raise BadRequest(
            f"the grant at the source does not name a {kind}: a part of the name is missing or empty, or there are too "
            "many"
        )
    namespace: list[JsonValue] = [*(levels if kind == "namespace" else levels[:-1])]
    grant: JsonObject = {"type": kind, "privilege": privilege}
    if kind != "catalog":
        grant["namespace"] = namespace
    if kind not in ("catalog", "namespace"):
        grant[f"{kind}Name"] = levels[-1]
    return Counterpart(replace(source, document=grant))


def differences(there: RealmObject, here: RealmObject) -> Iterator[str]:
    """Yields in which fields an object here differs from the counterpart of one at the source, as texts. More allowed
    locations here, and another spelling of the base location, are no difference."""
    ours, theirs = mapping(here.document, "properties"), mapping(there.document, "properties")
    for name in unequal_names(ours, theirs):
        if not _is_same_base(name, ours, theirs):
            yield f"property {name}"
    if there.kind is not Kind.CATALOG:
        if there.document.get("federated") != here.document.get("federated"):
            yield "federated"
        return
    if text(there.document, "type") != text(here.document, "type"):
        yield "type"
    ours, theirs = mapping(here.document, "storageConfigInfo"), mapping(there.document, "storageConfigInfo")
    for location in sorted({*texts(theirs, "allowedLocations")} - {*texts(ours, "allowedLocations")}):
        yield f"allowed location {location}"
    for name in unequal_names(ours, theirs):
        if name != "allowedLocations":
            yield f"storage field {name}"


def unequal_names(ours: Mapping[str, object], theirs: Mapping[str, object]) -> Sequence[str]:
    """Returns the names of properties or fields whose values differ, sorted. A missing one is equal to None."""
    return sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))


def _is_same_base(name: str, ours: JsonObject, theirs: JsonObject) -> bool:
    """Whether a property is the base location, and both values are spellings of one location."""
    if name != BASE_LOCATION or not isinstance(ours.get(name), str) or not isinstance(theirs.get(name), str):
        return False
    return Location.parse(str(ours[name])).normal == Location.parse(str(theirs[name])).normal
