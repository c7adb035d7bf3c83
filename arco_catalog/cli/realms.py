"""`arco realms`: lists, shows and drops the realms of a store."""

import sys
from collections.abc import Sequence

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_realm, find_root_catalog
from arco_catalog.cli.output import facts, table
from arco_catalog.cli.session import DAY_MS, carry_out, open_session
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.management.realm_drop import RealmSummary, drop_realm, realms_in, summarize_realm
from arco_catalog.state.characters import escaped

HEADINGS = ("REALM", "STATE", "CATALOGS", "PRINCIPALS", "PRINCIPAL ROLES")
AT_ROOT = "(the store's root)"


def run_list(options: CatalogOptions, *, as_json: bool) -> int:
    """Displays all realms of a store, dropped ones too, with `as_json` as JSON, or one sentence if there is none.
    Returns 0; 1 if one of them can't be read, of which only the error is known. Raises `CliError`."""

    async def work() -> Sequence[RealmSummary]:
        async with open_session(
            options, "realms list", find_root_catalog, DAY_MS, tolerates_read_errors=True
        ) as session:
            return await realms_in(session)

    found = carry_out(work)
    shown: list[JsonValue] = [_to_json(each) for each in found]
    if as_json:
        print(json_text(shown))
    else:
        print(table(HEADINGS, [_row(each) for each in found]) if found else f"There is no realm in {options.store}.")
        for each in found:
            if each.error is not None:
                print(escaped(f"Realm {each.prefix or AT_ROOT} can't be read: {each.error}"), file=sys.stderr)
    return 1 if any(each.error is not None for each in found) else 0


def run_show(options: CatalogOptions, *, as_json: bool) -> int:
    """Displays the realm that --realm names, or without it the one at the store's root, also if it was dropped. Returns
    0. Raises `CliError`, as `NotThere` if there was never such a realm."""

    async def work() -> RealmSummary:
        async with open_session(options, "realms show", find_realm) as (realm, session):
            return await summarize_realm(session.state, realm.prefix)

    found = carry_out(work)
    if as_json:
        print(json_text(_to_json(found)))
    else:
        print(facts(list(zip(map(str.lower, HEADINGS), _row(found), strict=True))))
    return 0


def run_drop(options: CatalogOptions, *, confirmed: bool, as_json: bool) -> int:
    """Drops the realm that the options name, which must have no catalogs, and displays whether this run dropped it or
    it was dropped before. Returns 0. Raises `CliError` if the drop is not `confirmed`, with the counts of what would be
    lost; if the realm has catalogs; and if there is no such realm."""

    async def work() -> tuple[str, bool]:
        async with open_session(options, "realms drop", find_realm, writes=confirmed) as (realm, session):
            if not confirmed:
                found = await summarize_realm(session.state, realm.prefix)
                raise CliError(
                    f"the realm {realm.name} was not dropped: a drop also deletes {found.principals} principals and "
                    f"{found.principal_roles} principal roles, which can't be undone; drop the "
                    "catalogs first, if the realm has any, and confirm the drop with --principals-are-lost"
                )
            return realm.prefix, await drop_realm(session)

    name, dropped = carry_out(work)
    if as_json:
        print(json_text({"realm": name, "dropped": dropped}))
    else:
        done = f"Dropped realm {name or AT_ROOT}" if dropped else f"Realm {name or AT_ROOT} was dropped before"
        print(escaped(f"{done}. `arco bootstrap --reopen` makes it anew."))
    return 0


def _to_json(found: RealmSummary) -> JsonObject:
    """Returns the summary of a realm as JSON: if the registry can't be read, only the prefix and the error."""
    if found.error is not None:
        return {"realm": found.prefix, "error": found.error}
    return {
        "realm": found.prefix,
        "dropped": found.is_dropped,
        "catalogs": [*found.catalogs],
        "principals": found.principals,
        "principalRoles": found.principal_roles,
    }


def _row(found: RealmSummary) -> tuple[str, ...]:
    """Returns a realm's row in the list: prefix, state, catalogs, and the numbers of principals and principal roles;
    for one that can't be read the prefix, `corrupt` and dashes."""
    if found.error is not None:
        return found.prefix or AT_ROOT, "corrupt", "-", "-", "-"
    state = "dropped" if found.is_dropped else "open"
    names = format_text(", ".join(found.catalogs)) if found.catalogs else "-"
    return found.prefix or AT_ROOT, state, names, str(found.principals), str(found.principal_roles)
