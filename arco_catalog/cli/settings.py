"""`arco settings`: shows and changes the settings in the catalog's own record: the rules for idempotency keys, and the
locations besides the catalog's folder where tables may be."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.output import facts
from arco_catalog.cli.session import another, carry_out, open_session
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.operations.recorded_locations import change_locations
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.key_resolution import set_key_policy
from arco_catalog.state.key_settings import SEARCH_MS, Dialect, KeyPolicy, KeySettings
from arco_catalog.state.registry import RegistryState

NO_RECORD = "not recorded: the first server that takes a key records what its variables set"
TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that `arco settings` makes: the rules for idempotency keys, and allowed locations to add or remove.
    None or an empty sequence changes nothing."""

    dialect: Dialect | None = None
    enabled: bool | None = None
    added: Sequence[str] = ()
    removed: Sequence[str] = ()

    @property
    def of_keys(self) -> bool:
        """Whether these changes set rules for idempotency keys."""
        return self.dialect is not None or self.enabled is not None

    @property
    def of_locations(self) -> bool:
        """Whether these changes add or remove allowed locations of the catalog."""
        return bool(self.added or self.removed)


def run(options: CatalogOptions, changes: Changes, *, as_json: bool) -> int:
    """Applies the changes, if there are any, and displays the settings of the catalog. Returns 0. Raises `CliError`."""

    async def work() -> tuple[RegistryState, str]:
        writes = bool(changes.of_keys or changes.of_locations)
        async with open_session(options, "settings", find_catalog, TIMEOUT_MS, writes=writes) as session:
            if changes.of_locations:
                await change_locations(session, added=changes.added, removed=changes.removed)
            changed = changes.of_keys and await _change_keys(another(session), changes)
            head = await session.state.head()
            settings = head.key_settings
            return head, "" if settings is None or not changed else _advice(settings, session.now_ms())

    head, advice = carry_out(work)
    settings, locations = head.key_settings, head.allowed_locations
    if as_json:
        listed: list[JsonValue] = [*locations]
        keys = None if settings is None else settings.to_json()
        print(json_text({"idempotency": keys, "allowed_locations": listed}))
        return 0
    lines = [("idempotency keys", NO_RECORD if settings is None else _described(settings))]
    print(facts([*lines, *(("allowed location", each) for each in locations)]))
    if advice:
        print(advice)
    if changes.of_locations:
        print("\nAfter this change, commands use these allowed locations at once, servers from their next start on.")
    return 0


async def _change_keys(session: Session, changes: Changes) -> bool:
    """Records how the catalog is to read idempotency keys, by a commit if that is a change of the record; a rule that
    is not given stays as it is recorded, or else as the default. Returns whether the record was changed."""
    settings = (await session.state.head()).key_settings
    policy = KeyPolicy() if settings is None else settings.policy
    if changes.dialect is not None:
        policy = replace(policy, dialect=changes.dialect)
    if changes.enabled is not None:
        policy = replace(policy, enabled=changes.enabled)
    return await set_key_policy(session, policy) != settings


def _described(settings: KeySettings) -> str:
    """Returns in words how idempotency keys are read."""
    return f"{settings.policy.dialect.value} dialect" if settings.policy.enabled else "not taken"


def _advice(settings: KeySettings, now_ms: int) -> str:
    """Returns a note for after a change of the rules for idempotency keys: from when servers follow them, until when
    they also search markers of rules before, if they do, and that servers of older versions do not read the record."""
    previous = settings.previous_policies(now_ms)
    search = ""
    if previous:
        until_ms = max(each.until_ms for each in settings.replaced if each.policy in previous)
        search = (
            f"Until {format_time(until_ms + SEARCH_MS)} they also search markers of the setting before, which costs "
            "each write with a key one more call. "
        )
    return (
        f"\nServers use this from their next write on, whatever their variables set. {search}Servers of versions "
        "without `arco settings` do not read this record: replace them before a change."
    )
