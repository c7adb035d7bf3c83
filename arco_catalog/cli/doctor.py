"""`arco doctor` without the URL of a store (with one, `store_doctor.py` tests that store): tests the configured store
and the catalogs in it, and displays what prevents them from working and what to do about it."""

from collections.abc import Sequence

from arco_catalog.cli.checks import Check, Checks, Status
from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.kept_versions import kept_versions
from arco_catalog.cli.output import table
from arco_catalog.cli.session import carry_out, report_slow_store
from arco_catalog.iceberg.json import JsonValue

HEADINGS = ("CHECK", "STATUS", "FOUND", "WHAT TO DO")


def run(options: CatalogOptions, *, as_json: bool) -> int:
    """Runs all checks of a store and the catalogs in it, and displays the results as text or JSON. A store on S3 that
    answers also gets the check whether the bucket keeps versions. Returns 1 if a check failed, else 0. Raises
    `CliError`."""

    async def work() -> list[Check]:
        async with report_slow_store(options.store):
            checks = await Checks(options).run()
            answers = any(check.name == "store" and check.status is Status.OK for check in checks)
            if options.store.startswith("s3:") and answers:
                checks.append(await kept_versions(options))
            return checks

    return show(carry_out(work), as_json=as_json)


def show(checks: Sequence[Check], *, as_json: bool) -> int:
    """Prints what was found as text or JSON. Returns 1 if a check failed, else 0."""
    failed = any(check.status is Status.FAILED for check in checks)
    if as_json:
        listed: list[JsonValue] = [
            {"check": each.name, "status": each.status, "found": each.found, "advice": each.advice} for each in checks
        ]
        print(json_text({"ok": not failed, "checks": listed}))
    else:
        print(table(HEADINGS, [(each.name, each.status, each.found, each.advice or "") for each in checks]))
    return 1 if failed else 0
