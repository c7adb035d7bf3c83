"""Vending that is made for the first client that wants it: whoever vends nothing imports none of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from arco_catalog.config.variables import VENDING, VENDING_KEYS_FILE
from arco_catalog.protocol.request_stats import note_vended
from arco_catalog.state.runtime import Runtime

if TYPE_CHECKING:
    from arco_catalog.vending.service import Vending
    from arco_catalog.vending.storage_policy import StoragePolicy


class LazyVending:
    """Access to the files of tables, by the variables of the stores."""

    def __init__(self, environment: Mapping[str, str], runtime: Runtime) -> None:
        self._environment = environment
        self._runtime = runtime
        self._made: Vending | None = None

    def __call__(self) -> "Vending":
        """Raises `ValueError` for variables that can't be read."""
        if self._made is None:
            from arco_catalog.vending.configured import configured_vending

            self._made = configured_vending(self._environment, self._runtime, note_vended)
        return self._made

    def storage_policy(self) -> "StoragePolicy":
        """What storage configurations may have this process do. Raises `ValueError` like the others."""
        from arco_catalog.vending.storage_policy import StoragePolicy

        return StoragePolicy.from_environment(self._environment)

    def check(self) -> None:
        """Raises `ValueError` at start for what an operator set for it."""
        if any(self._environment.get(variable.name) for variable in (*VENDING, VENDING_KEYS_FILE)):
            self()

    async def close(self) -> None:
        """Closes connections."""
        if self._made is not None:
            await self._made.close()
