"""`arco expire`: removes what has expired of a table, or shows it."""

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import carry_out, open_session
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.tasks import require_task
from arco_catalog.planning.upkeep_policy import SnapshotExpiry
from arco_catalog.state.characters import escaped
from arco_catalog.upkeep.expiry.requests import preview, request_expiry
from arco_catalog.upkeep.purge.worker import task_worker


def run(options: CatalogOptions, table: str, settings: SnapshotExpiry, *, dry: bool, as_json: bool) -> int:
    """Removes what has expired of a table by these settings, else its policy, else its properties, by a task that it
    makes and executes in this process, and writes out the result; if `dry`, only shows what would be removed.
    Returns 0, also if the attempt failed and the task waits for another, or if another worker executes it. Raises
    `CliError`, also if the task failed for good."""
    namespace, name = parse_identifier(table)

    async def show() -> JsonObject:
        async with open_session(options, "expire", find_catalog) as session:
            return await preview(session, namespace, name, settings)

    async def remove() -> JsonObject:
        async with open_session(options, "expire", find_catalog, writes=True) as session:
            task = await request_expiry(session, namespace, name, settings)
            await task_worker(session.catalog).run_task(task)
            found = (await require_task(session, task)).task
            return {"task": task, "status": found.status.value, "result": found.summary}

    if dry:
        plan = carry_out(show)
        print(json_text(plan) if as_json else escaped(_as_text(table, plan)))
        return 0
    result = carry_out(remove)
    if result["status"] == "FAILURE":
        raise CliError(
            f"the snapshots of {table} were not expired, see `arco tasks show {result['task']}`: {result['result']}"
        )
    print(json_text(result) if as_json else escaped(f"{table}: {result['result']} (task {result['task']})"))
    return 0


def _as_text(table: str, plan: JsonObject) -> str:
    """Formats which branches, tags and snapshots of a table expire, or, if they are held back, why none does."""
    if plan["held_back"] is not None:
        return f"{table}: nothing expires: {plan['held_back']}"
    snapshots, refs = plan["snapshots"], plan["refs"]
    assert isinstance(snapshots, list)
    assert isinstance(refs, list)
    named = "".join(f"\n  branch or tag {ref}" for ref in refs) + "".join(f"\n  snapshot {each}" for each in snapshots)
    return f"{table}: {len(snapshots):,} snapshots and {len(refs):,} branches or tags expire{named}"
