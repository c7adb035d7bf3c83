"""`arco upgrade`: raises the version of the registry of a catalog, or of a realm and all its catalogs."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_inventory
from arco_catalog.cli.left_out import LeftOut, run_on_each
from arco_catalog.cli.session import carry_out, open_session
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.catalogs import DeployedCatalog
from arco_catalog.operations.upgrade import Upgrade, preview_upgrade, upgrade
from arco_catalog.state.commit_record import NEWEST_VERSION


@dataclass(frozen=True, slots=True)
class _RegistryUpgrade:
    """One registry, of a catalog or a realm, with its upgrade."""

    owner: DeployedCatalog
    upgrade: Upgrade

    def describe(self, *, dry: bool) -> str:
        """Returns the line that the command prints for the registry: both versions, or that it has the newest one, or
        which commit prevents the upgrade."""
        owner, upgrade = f"{self.owner.owner} {self.owner.name}", self.upgrade
        if not upgrade.is_needed:
            return f"{owner}: is version {upgrade.before} already"
        if upgrade.prevented_by is not None:
            return (
                f"{owner}: stays version {upgrade.before}: a program that cannot read version {NEWEST_VERSION} made "
                f"the commit {upgrade.prevented_by.id} at {format_time(upgrade.prevented_by.at_ms)}"
            )
        return f"{owner}: version {upgrade.before} -> {NEWEST_VERSION}{' (dry run)' if dry else ''}"

    def to_json(self) -> JsonObject:
        """Returns the owner of the registry, the versions before and after the upgrade (in a dry run the one that it
        would have), equal if it is prevented, and the commit that prevents it."""
        before, prevented_by = self.upgrade.before, self.upgrade.prevented_by
        return {
            "name": self.owner.name,
            "owner": self.owner.owner,
            "from_version": before,
            "to_version": before if prevented_by is not None else NEWEST_VERSION,
            "prevented_by": None if prevented_by is None else {"commit": prevented_by.id, "at_ms": prevented_by.at_ms},
        }


def run(options: CatalogOptions, *, dry: bool, force: bool, as_json: bool) -> int:
    """Upgrades the registry of the realm and of each of its catalogs, or of the one catalog of a store; if `dry` only
    reads them. A commit of an older program within a day prevents it, unless there is `force`. Prints a line for each,
    or JSON. Returns 1 if an upgrade is prevented, or a registry of several can't be read, else 0. Raises `CliError`."""

    step = preview_upgrade if dry else upgrade

    async def work() -> tuple[Sequence[_RegistryUpgrade], Sequence[LeftOut]]:
        async with open_session(options, "upgrade", find_inventory, writes=not dry) as inventory:
            owners = (*inventory.registries, *inventory.catalogs)
            found, left_out = await run_on_each(owners, "upgrade", partial(step, force=force))
            return [_RegistryUpgrade(owner, made) for owner, made in found], left_out

    upgraded, left_out = carry_out(work)
    is_prevented = any(each.upgrade.prevented_by is not None for each in upgraded)
    if as_json:
        registries: list[JsonValue] = [each.to_json() for each in upgraded]
        others: list[JsonValue] = [each.to_json() for each in left_out]
        print(json_text({"registries": registries, "left_out": others, "dry_run": dry}))
        return int(is_prevented or bool(left_out))
    for each in upgraded:
        print(each.describe(dry=dry))
    for unread in left_out:
        print(unread.describe(), file=sys.stderr)
    if is_prevented:
        print(
            f"\nNot all registries {'would be' if dry else 'were'} upgraded: replace all servers, functions, jobs and "
            "commands of older programs, and run `arco upgrade` again a day after their last commit. With --force it "
            "upgrades at once, and older programs fail from then on."
        )
    return int(is_prevented or bool(left_out))
