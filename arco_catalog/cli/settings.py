"""`arco settings`: what the catalog records of how servers are to serve it."""

from dataclasses import replace

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.output import facts
from arco_catalog.cli.session import carry_out, reading, writing
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.key_resolution import set_key_policy
from arco_catalog.state.key_settings import SEARCH_MS, Dialect, KeyPolicy, KeySettings

NO_RECORD = "not recorded: the first server that takes a key records what its variables set"
TIMEOUT_MS = 60_000


def run(options: CatalogOptions, dialect: Dialect | None, enabled: bool | None, *, as_json: bool) -> int:
    """Prints the settings of a catalog, after the changes that are given. Raises `CliError`."""

    async def work() -> KeySettings | None:
        if dialect is None and enabled is None:
            async with reading(options, "settings", TIMEOUT_MS) as session:
                return (await session.state.head()).key_settings
        async with writing(options, "settings", TIMEOUT_MS) as session:
            return await _change(session, dialect, enabled)

    settings = carry_out(work)
    if as_json:
        print(json_text({"idempotency": None if settings is None else settings.to_json()}))
    else:
        print(facts([("idempotency keys", NO_RECORD if settings is None else _described(settings))]))
        if settings is not None and settings.replaced and (dialect is not None or enabled is not None):
            print(_advice(settings))
    return 0


async def _change(session: Session, dialect: Dialect | None, enabled: bool | None) -> KeySettings:
    settings = (await session.state.head()).key_settings
    policy = KeyPolicy() if settings is None else settings.policy
    if dialect is not None:
        policy = replace(policy, dialect=dialect)
    if enabled is not None:
        policy = replace(policy, enabled=enabled)
    return await set_key_policy(session, policy)


def _described(settings: KeySettings) -> str:
    return f"{settings.policy.dialect.value} dialect" if settings.policy.enabled else "not taken"


def _advice(settings: KeySettings) -> str:
    """The consequences of a change for retries of earlier requests."""
    until = format_time(settings.replaced[0].until_ms + SEARCH_MS)
    return (
        f"\nServers use this from their next write on, whatever their variables set. Until {until} they also look "
        "for keys of the setting before, which costs each write with a key one more call. Servers of versions "
        "without `arco settings` do not read this record: replace them before a change."
    )
