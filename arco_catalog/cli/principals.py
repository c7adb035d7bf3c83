"""`arco principals`: lists, makes, reads, changes and drops the principals of a realm, and gives them new secrets,
by requests of the management API."""

from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text, format_time
from arco_catalog.cli.command import ManagementOptions
from arco_catalog.cli.management import ApiClient, open_management
from arco_catalog.cli.options import parse_pairs
from arco_catalog.cli.output import facts, table
from arco_catalog.cli.session import carry_out
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import mapping, objects, text

HEADINGS = ("NAME", "CLIENT ID", "CHANGED (UTC)", "SUBJECT")
SUBJECT = "arco.subject"
READS = ("list", "show")


@dataclass(frozen=True, slots=True)
class PrincipalArguments:
    """The arguments of `arco principals create` and `update`: properties to set, keys to remove, and whether a new
    principal must rotate its secret."""

    properties: Sequence[str]
    removed: Sequence[str]
    must_rotate: bool


def run(
    options: ManagementOptions, action: str, name: str | None, arguments: PrincipalArguments, *, as_json: bool
) -> int:
    """Carries out the action and prints the result: a new secret this once. All actions but a list need a
    `name`. Returns 0. Raises `CliError`, as `NotThere` if there is no such principal."""

    async def work() -> str:
        async with open_management(options, f"principals {action}", writes=action not in READS) as api:
            shown = await (api.get("principals") if name is None else _carry_out_action(api, action, name, arguments))
            if not as_json:
                return _as_text(action, shown)
            return json_text(shown["principals"] if name is None else shown)

    print(carry_out(work))
    return 0


async def _carry_out_action(api: ApiClient, action: str, name: str, arguments: PrincipalArguments) -> JsonObject:
    """Carries out an action on one principal, and returns its JSON: of `show` with the names of its principal roles, of
    `create`, `rotate` and `reset` with its new credentials, of `drop` only with the name."""
    match action:
        case "create":
            properties: JsonObject = {**parse_pairs("--property", "team=sales", arguments.properties)}
            body: JsonObject = {
                "principal": {"name": name, "properties": properties},
                "credentialRotationRequired": arguments.must_rotate,
            }
            return await api.send("POST", "principals", has="credentials", body=body)
        case "show":
            principal = await api.get("principals", name)
            roles = objects(await api.get("principals", name, "principal-roles"), "roles")
            return {**principal, "principalRoles": [text(role, "name") for role in roles]}
        case "update":
            return await _update(api, name, arguments)
        case "drop":
            await api.change("DELETE", "principals", name)
            return {"name": name}
        case _:
            return await api.send("POST", "principals", name, action, has="credentials")


async def _update(api: ApiClient, name: str, arguments: PrincipalArguments) -> JsonObject:
    """Sets and removes the properties that the arguments name, keeps the others, and returns the principal. Raises
    `CliError` if another change commits in between."""
    principal = await api.get("principals", name)
    kept = {key: value for key, value in mapping(principal, "properties").items() if key not in arguments.removed}
    properties: JsonObject = {**kept, **parse_pairs("--property", "team=sales", arguments.properties)}
    body: JsonObject = {"currentEntityVersion": principal["entityVersion"], "properties": properties}
    return await api.send("PUT", "principals", name, has="name", body=body)


def _as_text(action: str, shown: JsonObject) -> str:
    """Formats the result of an action: a list of principals, one principal, its new credentials, or one line that it
    was changed or dropped."""
    match action:
        case "list":
            found = objects(shown, "principals")
            return table(HEADINGS, [*map(_row, found)]) if found else "This realm has no principals."
        case "show":
            return _facts(shown)
        case "update" | "drop":
            done = "Changed" if action == "update" else "Dropped"
            return escaped(f"{done} principal {shown.get('name')!r}.")
        case _:
            done = "Made principal" if action == "create" else "A new secret for principal"
            return _credentials(f"{done} {mapping(shown, 'principal').get('name')!r}", mapping(shown, "credentials"))


def _credentials(what: str, credentials: JsonObject) -> str:
    """Formats new credentials below a line that begins with `what`."""
    lines = [("  client id", text(credentials, "clientId")), ("  client secret", text(credentials, "clientSecret"))]
    return f"{escaped(what)}. The secret is shown this once:\n{facts(lines)}"


def _row(shown: JsonObject) -> tuple[str, ...]:
    """Returns a principal's row in the list: name, client id, time of the last change, and subject."""
    subject = format_text(mapping(shown, "properties").get(SUBJECT))
    return text(shown, "name"), text(shown, "clientId"), format_time(shown.get("lastUpdateTimestamp")), subject


def _facts(shown: JsonObject) -> str:
    """Formats everything that `arco principals show` writes of a principal."""
    roles = shown["principalRoles"]
    lines = [
        ("name", text(shown, "name")),
        ("client id", text(shown, "clientId")),
        ("version", format_text(shown.get("entityVersion"))),
        ("made", format_time(shown.get("createTimestamp"))),
        ("changed", format_time(shown.get("lastUpdateTimestamp"))),
        *(("principal role", format_text(role)) for role in (roles if isinstance(roles, list) else ())),
        *(("property", f"{key}={format_text(value)}") for key, value in mapping(shown, "properties").items()),
    ]
    return facts(lines)
