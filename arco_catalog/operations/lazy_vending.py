"""Makes the service that vends credentials at its first use, so that a process that vends none imports none of its
modules."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from arco_catalog.config.variables import VENDING, VENDING_KEYS_FILE
from arco_catalog.protocol.request_stats import note_vended
from arco_catalog.state.runtime import Runtime

if TYPE_CHECKING:  # at run time these are imported where they are used, which is the purpose of this module
    from arco_catalog.vending.service import Vending
    from arco_catalog.vending.storage_policy import StoragePolicy


class LazyVending:
    """Makes at its first use, and caches, the `Vending` that the environment configures: the service that vends
    credentials."""

    def __init__(self, environment: Mapping[str, str], runtime: Runtime) -> None:
        self._environment = environment
        self._runtime = runtime
        self._made: Vending | None = None

    def __call__(self) -> "Vending":
        """Returns the service that vends credentials, made at the first call from the environment variables. Raises
        `ValueError` for invalid variables."""
        if self._made is None:
            from arco_catalog.vending.configured import configured_vending

            self._made = configured_vending(self._environment, self._runtime, note_vended)
        return self._made

    def storage_policy(self) -> "StoragePolicy":
        """Returns what storage configurations of catalogs may make this process do, by the environment variables.
        Raises `ValueError` for invalid variables."""
        from arco_catalog.vending.storage_policy import StoragePolicy

        return StoragePolicy.from_environment(self._environment)

    def check(self) -> None:
        """Makes the service that vends credentials now if a variable of `VENDING`, or the one for the file of keys, is
        set, so that a process with invalid variables fails at start; otherwise it would fail at the first use. Raises
        `ValueError`."""
        if any(self._environment.get(variable.name) for variable in (*VENDING, VENDING_KEYS_FILE)):
            self()

    async def close(self) -> None:
        """Closes the connections of the service that vends credentials, if it was made."""
        if self._made is not None:
            await self._made.close()
