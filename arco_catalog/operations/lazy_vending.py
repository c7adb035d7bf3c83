"""Vending that is made for the first client that wants it: whoever vends nothing imports none of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from arco_catalog.protocol.request_stats import note_vended
from arco_catalog.state.runtime import Runtime

if TYPE_CHECKING:
    from arco_catalog.vending.service import Vending


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

    async def close(self) -> None:
        """Closes connections."""
        if self._made is not None:
            await self._made.close()
