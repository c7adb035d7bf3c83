"""`arco doctor` without the URL of a store (with one, `store_doctor.py` tests that store): tests the configured store
and the catalogs in it, and displays what prevents them from working and what to do about it."""

from collections.abc import Sequence

from arco_catalog.authentication.authorization import load_policy
from arco_catalog.cli.checks import Check, Checks, Status
from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.kept_versions import kept_versions
from arco_catalog.cli.output import table
from arco_catalog.cli.session import carry_out, report_slow_store
from arco_catalog.config.variables import OPA_BATCH_URL, OPA_URL
from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.planning.policy_questions import Actor, Question
from arco_catalog.planning.privileges import Privilege
from arco_catalog.state.runtime import SystemRuntime

HEADINGS = ("CHECK", "STATUS", "FOUND", "WHAT TO DO")
TRIED = (Privilege.CATALOG_READ_PROPERTIES, Privilege.CATALOG_LIST, Privilege.NAMESPACE_LIST)
"""The actions about which the policy is queried, on the catalog."""


def run(options: CatalogOptions, *, as_json: bool) -> int:
    """Runs all checks of a store and the catalogs in it, and displays the results as text or JSON. A store on S3 that
    answers also gets the check whether the bucket keeps versions, and a policy outside of the catalog that the
    configuration names the check whether it answers. Returns 1 if a check failed, else 0. Raises
    `CliError`."""

    async def work() -> list[Check]:
        async with report_slow_store(options.store):
            checks = await Checks(options).run()
            answers = any(check.name == "store" and check.status is Status.OK for check in checks)
            if options.store.startswith("s3:") and answers:
                checks.append(await kept_versions(options))
            return [*checks, *await policy(options)]

    return show(carry_out(work), as_json=as_json)


async def policy(options: CatalogOptions) -> Sequence[Check]:
    """Checks that the policy outside of the catalog gives a readable answer, about one action and, if it takes batches,
    about two at once, whatever it allows; no check if the configuration names none. An invalid configuration is a
    failed check."""
    name, advice = "policy", f"check {OPA_URL.name} and {OPA_BATCH_URL.name}, and that the policy is loaded"
    try:
        agent, connections = load_policy(options.environment, SystemRuntime())
    except ValueError as error:
        return [Check(name, Status.FAILED, str(error), "correct the variable: a server does not start with it")]
    if agent is None or connections is None:
        return []
    actor = Actor("arco-doctor", "arco-doctor", realm=options.realm)
    one, *two = (Question(each.value, "CATALOG", options.warehouse) for each in TRIED)
    try:
        await agent.decide(actor, [one])
        if agent.takes_batches:
            await agent.decide(actor, two)
    except Unavailable as error:
        return [Check(name, Status.FAILED, str(error), advice)]
    finally:
        await connections.close()
    return [Check(name, Status.OK, "it answers; `arco grants check` at a server shows what it allows")]


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
