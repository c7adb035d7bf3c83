"""Registries that a command over several ones leaves out because they can't be read, and names before it ends."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TypeVar

from arco_catalog.cli.session import operator_request
from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.catalogs import DeployedCatalog
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import text

T = TypeVar("T")

TIMEOUT_MS = 60_000
"""The time of a command for each registry."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The registry of a catalog, a realm or a delegation service (`owner`) that can't be read, with the error."""

    owner: str
    name: str
    error: str

    @classmethod
    def of(cls, deployed: DeployedCatalog, error: InternalError) -> "LeftOut":
        """Returns the registry of an owner of state whose read has failed by this error."""
        return cls(str(deployed.owner), deployed.name, error.message)

    @classmethod
    def parse(cls, document: JsonObject) -> "LeftOut":
        """Reads what `to_json` returns."""
        return cls(text(document, "owner"), text(document, "name"), text(document, "error"))

    def describe(self) -> str:
        """Returns the line that a command prints for the registry."""
        return escaped(f"{self.owner} {self.name}: left out, as it can't be read: {self.error} ({self.advice})")

    @property
    def advice(self) -> str:
        """A sentence with the command that reports what is lost, and for a catalog also with the one that restores
        it."""
        if self.owner != "catalog":
            return "`arco fsck --all` reports what is wrong"
        of = f"--warehouse {quote(self.name)}"
        return f"`arco fsck {of}` reports what is wrong, `arco restore {of}` restores it"

    def to_json(self) -> JsonObject:
        """Returns the owner's kind and name, and the error."""
        return {"name": self.name, "owner": self.owner, "error": self.error}


async def run_on_each(
    owners: Iterable[DeployedCatalog], command: str, work: Callable[[Session], Awaitable[T]]
) -> tuple[Sequence[tuple[DeployedCatalog, T]], Sequence[LeftOut]]:
    """Calls `work` with an operator's session on each registry, one after another. Returns the results with their
    owners, and the registries of which the read fails by `InternalError`. Raises the other errors of `work`, and of
    opening a registry; the registries after it are then not read."""
    results: list[tuple[DeployedCatalog, T]] = []
    left_out: list[LeftOut] = []
    for each in owners:
        try:
            opened = each.open()
            session = opened.session(operator_request(opened.runtime, command, TIMEOUT_MS), ALLOW_ALL)
            results.append((each, await work(session)))
        except InternalError as error:
            left_out.append(LeftOut.of(each, error))
    return results, left_out
