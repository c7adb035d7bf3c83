"""`arco upgrade`: raises the version of the registry of a catalog, or of a realm and all its catalogs."""

from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_inventory
from arco_catalog.cli.session import carry_out, open_session, operator_request
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.catalogs import DeployedCatalog
from arco_catalog.operations.upgrade import Upgrade, planned_upgrade, upgrade
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.state.registry import NEWEST_VERSION

TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class _Upgraded:
    """One registry, of a catalog or a realm, with its upgrade."""

    owner: DeployedCatalog
    upgrade: Upgrade

    def describe(self, *, dry: bool) -> str:
        """Returns the line that the command prints for the registry."""
        owner, upgrade = f"{self.owner.owner} {self.owner.name}", self.upgrade
        if not upgrade.is_needed:
            return f"{owner}: is version {upgrade.before} already"
        if upgrade.refused_for is not None:
            return (
                f"{owner}: stays version {upgrade.before}: a program that cannot read version {NEWEST_VERSION} made "
                f"the commit {upgrade.refused_for.id} at {format_time(upgrade.refused_for.at_ms)}"
            )
        return f"{owner}: version {upgrade.before} -> {NEWEST_VERSION}{' (dry run)' if dry else ''}"

    def to_json(self) -> JsonObject:
        """Returns the versions before and after the upgrade, and the commit for which it was refused."""
        before, refused_for = self.upgrade.before, self.upgrade.refused_for
        return {
            "name": self.owner.name,
            "owner": self.owner.owner,
            "from_version": before,
            "to_version": before if refused_for is not None else NEWEST_VERSION,
            "refused_for": None if refused_for is None else {"commit": refused_for.id, "at_ms": refused_for.at_ms},
        }


def run(options: CatalogOptions, *, dry: bool, force: bool, as_json: bool) -> int:
    """Upgrades the registry of the realm and of each of its catalogs, or of the one catalog of a store; if `dry` only
    reads them. Prints a line for each, or JSON. Returns 1 if an upgrade was refused, else 0. Raises `CliError`."""

    async def work() -> Sequence[_Upgraded]:
        async with open_session(options, "upgrade", find_inventory, writes=not dry) as inventory:
            upgraded: list[_Upgraded] = []
            for each in (*inventory.registries, *inventory.catalogs):
                opened = each.open()
                session = opened.session(operator_request(opened.runtime, "upgrade", TIMEOUT_MS), ALLOW_ALL)
                made = await (planned_upgrade if dry else upgrade)(session, force=force)
                upgraded.append(_Upgraded(each, made))
            return upgraded

    upgraded = carry_out(work)
    is_refused = any(each.upgrade.refused_for is not None for each in upgraded)
    if as_json:
        registries: list[JsonValue] = [each.to_json() for each in upgraded]
        print(json_text({"registries": registries, "dry_run": dry}))
        return int(is_refused)
    for each in upgraded:
        print(each.describe(dry=dry))
    if is_refused:
        print(
            "\nReplace all servers, functions, jobs and commands of older programs, and run the command again a day "
            "after the last commit. With --force it upgrades at once, and older programs fail from then on."
        )
    return int(is_refused)
