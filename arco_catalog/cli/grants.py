"""`arco grants`: lists, adds and revokes the grants of catalog roles, checks the privileges of principals, and
lists who has access, by requests of the management API."""

import sys
from collections.abc import Iterator, Sequence

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text
from arco_catalog.cli.command import ManagementOptions
from arco_catalog.cli.errors import CliError, NotThere
from arco_catalog.cli.grant_texts import format_grant, format_securable
from arco_catalog.cli.identifiers import parse_identifier, parse_namespace
from arco_catalog.cli.management import ApiClient, open_management
from arco_catalog.cli.output import facts, table
from arco_catalog.cli.session import carry_out
from arco_catalog.config.variables import OPA_URL
from arco_catalog.http.options import UNIT_SEPARATOR
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import mapping, objects, optional_text, text

HEADINGS = ("CATALOG ROLE", "PRIVILEGE", "ON")
WHO_HEADINGS = ("PRIVILEGE", "PRINCIPAL", "PRINCIPAL ROLE", "CATALOG ROLE", "GRANT")
CALLER = "-"
"""The principal of a check of the caller's own privileges."""


def parse_grant(privilege: str, what: str | None, kind: str | None) -> JsonObject:
    """Returns the grant of a privilege in the form of the management API, on the catalog if `what` is None, else on the
    securable with this name: of the `kind` namespace, view or policy, or by default a table. Raises `CliError` for a
    malformed name."""
    if what is None:
        return {"type": "catalog", "privilege": privilege}
    if kind == "namespace":
        return {"type": kind, "namespace": [*parse_namespace(what)], "privilege": privilege}
    levels, name = parse_identifier(what)
    kind = kind or "table"
    return {"type": kind, "namespace": [*levels], f"{kind}Name": name, "privilege": privilege}


def parse_securable(what: str, kind: str | None) -> Sequence[str]:
    """Returns the segments of a path that name a securable: of the `kind` namespace or view, or by default a table.
    Raises `CliError` for a malformed name."""
    if kind == "namespace":
        return "namespaces", UNIT_SEPARATOR.join(parse_namespace(what))
    levels, name = parse_identifier(what)
    return "namespaces", UNIT_SEPARATOR.join(levels), f"{kind or 'table'}s", name


def run_list(options: ManagementOptions, role: str | None, *, as_json: bool) -> int:
    """Displays the grants of a catalog role, or of all catalog roles of the catalog if `role` is None. Returns 0.
    Raises `CliError`, as `NotThere` if there is no such role or catalog."""

    async def work() -> str:
        async with open_management(options, "grants list", writes=False) as api:
            names = [role] if role is not None else await _roles(api, options)
            found: list[JsonObject] = [
                {**grant, "catalogRole": name} for name in names for grant in await _grants(api, options, name)
            ]
            return json_text([*found]) if as_json else _as_table(found)

    print(carry_out(work))
    return 0


def _as_table(found: Sequence[JsonObject]) -> str:
    """Formats grants as a table of role, privilege and securable; as a sentence if there are none."""
    lines = [(text(each, "catalogRole"), text(each, "privilege"), format_securable(each)) for each in found]
    return table(HEADINGS, lines) if found else "There are no grants."


async def _roles(api: ApiClient, options: ManagementOptions) -> Sequence[str]:
    """Returns the names of all catalog roles of the catalog."""
    listed = await api.get("catalogs", options.catalog.warehouse, "catalog-roles")
    return [text(role, "name") for role in objects(listed, "roles")]


async def _grants(api: ApiClient, options: ManagementOptions, role: str) -> Sequence[JsonObject]:
    """Returns the grants of a catalog role."""
    return objects(await api.get(*_path(options, role)), "grants")


def _path(options: ManagementOptions, role: str) -> Sequence[str]:
    """Returns the path of a catalog role's grants."""
    return "catalogs", options.catalog.warehouse, "catalog-roles", role, "grants"


def run_change(
    options: ManagementOptions, action: str, role: str, grant: JsonObject, *, cascade: bool, as_json: bool
) -> int:
    """Adds a grant to a catalog role, or revokes it, with `cascade` also on everything inside the securable, and
    displays it. Returns 0. Raises `CliError`, as `NotThere` if the role or the catalog does not exist, but not
    for the securable."""

    async def work() -> None:
        async with open_management(options, f"grants {action}", writes=True) as api:
            method, query = ("PUT", {}) if action == "add" else ("POST", {"cascade": "true"} if cascade else {})
            await api.change(method, *_path(options, role), body={"grant": grant}, query=query)

    carry_out(work)
    if as_json:
        print(json_text({**grant, "catalogRole": role}))
    else:
        verb, preposition = ("Granted", "to") if action == "add" else ("Revoked", "from")
        print(escaped(f"{verb} {format_grant(grant)} {preposition} catalog role {role!r}."))
    return 0


def run_check(options: ManagementOptions, who: str, grant: JsonObject, *, as_json: bool) -> int:
    """Displays whether a principal, or the caller for `CALLER`, has a privilege, and by which roles and grant, or what
    is lacking. Returns 0 if it has the privilege, else 1. Raises `CliError`, as `NotThere` if there is no such catalog,
    and, to a caller who may read principals, if there is no such principal. At the store the grants alone count, as a
    line on stderr states if the configuration names a policy outside of the catalog."""
    named: JsonObject = {} if who == CALLER else {"principal": who}

    async def work() -> tuple[bool, str]:
        async with open_management(options, "grants check", writes=False) as api:
            body: JsonObject = {"checks": [{**grant, **named}]}
            answer = await api.send("POST", "catalogs", options.catalog.warehouse, "check", has="results", body=body)
            found = objects(answer, "results")[0]
            allowed = found["allowed"] is True
            if named and not allowed:
                await _require_principal(api, who)
            return allowed, json_text(found) if as_json else _outcome(found, grant)

    allowed, shown = carry_out(work)
    print(shown)
    if options.url is None and options.catalog.environment.get(OPA_URL.name):
        print(
            "arco: grants check decides by grants only; "
            f"a server also queries the policy at {OPA_URL.name}: give --url",
            file=sys.stderr,
        )
    return 0 if allowed else 1


def run_who(options: ManagementOptions, securable: Sequence[str], privilege: str | None, *, as_json: bool) -> int:
    """Displays which principals have access to a table, view or namespace, by which roles and grants; if a `privilege`
    is given, only those that have it. Returns 0. Raises `CliError`, as `NotThere` if there is no such catalog, also if
    the server at --url checks no grants."""

    async def work() -> str:
        async with open_management(options, "grants who", writes=False) as api:
            found = await _holders(api, options, securable, privilege)
            if as_json:
                return json_text([*found])
            lines = [line for row in found for line in _who(row)]
            return table(WHO_HEADINGS, lines) if lines else "No principal role has access."

    print(carry_out(work))
    return 0


async def _holders(
    api: ApiClient, options: ManagementOptions, securable: Sequence[str], privilege: str | None
) -> Sequence[JsonObject]:
    """Returns the principals and roles that have a privilege, or any, on a securable, of all pages. Raises `CliError`
    if the server at --url checks no grants."""
    found: list[JsonObject] = []
    path = ("catalogs", options.catalog.warehouse, *securable, "access")
    query = {} if privilege is None else {"privilege": privilege}
    token: str | None = ""
    while token is not None:
        answer = await api.send("GET", *path, has="access", query={**query, "pageToken": token})
        if answer.get("checked") is False and options.url is not None:
            raise CliError(
                "arco grants who has nothing to list: this server checks no grants, and every caller may do everything"
            )
        found += objects(answer, "access")
        token = optional_text(answer, "next-page-token")
    return found


def _who(row: JsonObject) -> Iterator[Sequence[str]]:
    """Yields the rows for one holder, one for each privilege: privilege, principal, principal role, catalog role and
    grant."""
    principal, role = format_text(row.get("principal")), format_text(row.get("principal-role"))
    for held in objects(row, "privileges"):
        catalog_role, grant = format_text(held.get("catalog-role")), format_grant(mapping(held, "grant"))
        yield text(held, "privilege"), principal, role, catalog_role, grant


async def _require_principal(api: ApiClient, name: str) -> None:
    """Raises `NotThere` if there is no such principal. Any other error is ignored, since the caller may have no right
    to read principals."""
    try:
        await api.get("principals", name)
    except NotThere:
        raise
    except CliError:
        return


def _outcome(found: JsonObject, grant: JsonObject) -> str:
    """Formats whether a principal has a privilege, and by which roles and grant, or the reason why it has not."""
    allowed = found["allowed"] is True
    lines = [
        ("principal", format_text(found.get("principal"))),
        ("privilege", format_grant(grant)),
        ("allowed", "yes" if allowed else "no"),
    ]
    for label, field in (("principal role", "principalRole"), ("catalog role", "catalogRole"), ("reason", "reason")):
        value = optional_text(found, field)
        lines += [] if value is None else [(label, value)]
    if "grant" in found:
        lines.append(("grant", format_grant(mapping(found, "grant"))))
    return facts(lines)
