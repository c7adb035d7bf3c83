"""`arco roles`: lists, makes, reads, assigns, revokes and drops principal roles and catalog roles, by requests of
the management API."""

from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text, format_time
from arco_catalog.cli.command import ManagementOptions
from arco_catalog.cli.grant_texts import format_grant
from arco_catalog.cli.management import ApiClient, open_management
from arco_catalog.cli.options import parse_pairs
from arco_catalog.cli.output import facts, table
from arco_catalog.cli.session import carry_out
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import mapping, objects, text, texts

HEADINGS = ("NAME", "VERSION", "CHANGED (UTC)")
READS = ("list", "show")


@dataclass(frozen=True, slots=True)
class RoleArguments:
    """The arguments of an action of `arco roles`: whether it is about a catalog role, the principal or principal role
    that gets or loses the role, and the properties of a new role."""

    catalog_role: bool
    holder: str | None
    properties: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Kind:
    """The paths of the management API for one kind of roles: of all roles of the kind, and of those that a holder has.
    `field` is the name of a role in bodies, `holders` the last segment of the path that lists who has a role, `listed`
    the field of that list."""

    name: str
    field: str
    path: Sequence[str]
    holders: str
    listed: str
    held: Sequence[str]


def _kind(options: ManagementOptions, arguments: RoleArguments) -> _Kind:
    """Returns the paths and fields of the API for principal roles, or with --catalog-role for catalog roles."""
    holder, catalog = arguments.holder or "", options.catalog.warehouse
    if arguments.catalog_role:
        path, held = ("catalogs", catalog, "catalog-roles"), ("principal-roles", holder, "catalog-roles", catalog)
        return _Kind("catalog role", "catalogRole", path, "principal-roles", "roles", held)
    has: Sequence[str] = ("principals", holder, "principal-roles")
    return _Kind("principal role", "principalRole", ("principal-roles",), "principals", "principals", has)


def run(options: ManagementOptions, action: str, name: str | None, arguments: RoleArguments, *, as_json: bool) -> int:
    """Carries out the action and prints the result. All actions but a list, which is of all roles of the kind, need a
    `name`. Returns 0. Raises `CliError`, as `NotThere` if there is no such role, catalog, principal or principal
    role."""
    kind = _kind(options, arguments)

    async def work() -> str:
        async with open_management(options, f"roles {action}", writes=action not in READS) as api:
            shown = await (
                api.get(*kind.path) if name is None else _carry_out_action(api, kind, action, name, arguments)
            )
            if not as_json:
                return _as_text(kind, action, shown)
            return json_text(shown["roles"] if name is None else shown)

    print(carry_out(work))
    return 0


async def _carry_out_action(
    api: ApiClient, kind: _Kind, action: str, name: str, arguments: RoleArguments
) -> JsonObject:
    """Carries out an action on one role, and returns it as JSON: after `assign` and `revoke` only the name and who got
    or lost it, after `drop` only the name."""
    named: JsonObject = {kind.field: {"name": name}}
    match action:
        case "create":
            properties: JsonObject = {**parse_pairs("--property", "team=sales", arguments.properties)}
            made: JsonObject = {kind.field: {"name": name, "properties": properties}}
            return await api.send("POST", *kind.path, has="name", body=made)
        case "show":
            return await _show(api, kind, name)
        case "assign":
            await api.change("PUT", *kind.held, body=named)
            return {"name": name, "assignee": arguments.holder}
        case "revoke":
            await api.change("DELETE", *kind.held, name)
            return {"name": name, "assignee": arguments.holder}
        case _:
            await api.change("DELETE", *kind.path, name)
            return {"name": name}


async def _show(api: ApiClient, kind: _Kind, name: str) -> JsonObject:
    """Returns a role with the names of who has it and, of a catalog role, its grants."""
    role = await api.get(*kind.path, name)
    holders = objects(await api.get(*kind.path, name, kind.holders), kind.listed)
    shown: JsonObject = {**role, "assignees": [text(each, "name") for each in holders]}
    if kind.field == "catalogRole":
        shown["grants"] = [*objects(await api.get(*kind.path, name, "grants"), "grants")]
    return shown


def _as_text(kind: _Kind, action: str, shown: JsonObject) -> str:
    """Formats the result of an action: a list of roles, one role, or one line about a change."""
    name, assignee = shown.get("name"), shown.get("assignee")
    match action:
        case "list":
            found = objects(shown, "roles")
            return table(HEADINGS, [*map(_row, found)]) if found else f"There are no {kind.name}s."
        case "show":
            return _facts(kind, shown)
        case "assign":
            return escaped(f"Assigned {kind.name} {name!r} to {assignee!r}.")
        case "revoke":
            return escaped(f"Revoked {kind.name} {name!r} from {assignee!r}.")
        case _:
            return escaped(f"{'Made' if action == 'create' else 'Dropped'} {kind.name} {name!r}.")


def _row(shown: JsonObject) -> tuple[str, ...]:
    """Returns a role's row in the list: name, version, and time of the last change."""
    version = format_text(shown.get("entityVersion"))
    return text(shown, "name"), version, format_time(shown.get("lastUpdateTimestamp"))


def _facts(kind: _Kind, shown: JsonObject) -> str:
    """Formats everything that `arco roles show` writes of a role."""
    lines = [
        ("name", text(shown, "name")),
        ("version", format_text(shown.get("entityVersion"))),
        ("made", format_time(shown.get("createTimestamp"))),
        ("changed", format_time(shown.get("lastUpdateTimestamp"))),
        *((kind.holders.replace("-", " ").removesuffix("s"), name) for name in texts(shown, "assignees")),
        *(("grant", format_grant(each)) for each in objects(shown, "grants")),
        *(("property", f"{key}={format_text(value)}") for key, value in mapping(shown, "properties").items()),
    ]
    return facts(lines)
