"""`arco doctor URL`: whether a store does what a catalog needs, by each of its clients, and where those differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arco_catalog.cli.checks import denied, missing_folder
from arco_catalog.cli.clients import DIRECT, StoreClient, clients_of, needs_sdk
from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.errors import NotThere
from arco_catalog.cli.output import table
from arco_catalog.cli.session import carry_out, report_slow_store
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import ObjectStore, StoreDenied, StoreError
from storage_backends.conformance.check import Check, Finding, Grade
from storage_backends.conformance.checks import CHECKS
from storage_backends.conformance.examine import Examined, examine
from storage_backends.probe import FOLDER

if TYPE_CHECKING:
    from storage_backends.wire.http1 import Response

DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Report:
    """What each client found, why others were not run, and which could not reach the store."""

    examined: Mapping[str, Examined]
    not_run: Mapping[str, str]
    unreached: Mapping[str, str]

    @property
    def checks(self) -> Sequence[Check]:
        """Those that say something of this store."""
        return [check for check in CHECKS if any(check.name in each.findings for each in self.examined.values())]

    def differs(self, check: Check) -> bool:
        """Whether the clients disagree on one store, which is a fault of a client."""
        return len({_comparable(each.findings[check.name]) for each in self.examined.values()}) > 1

    @property
    def faults(self) -> list[str]:
        """What is wrong, a line each."""
        told = [f"{name} cannot reach the store: {reason}" for name, reason in self.unreached.items()]
        told += [
            f"{check.name}, by {name}: {_told(finding)}"
            for check in self.checks
            for name, each in self.examined.items()
            if (finding := each.findings[check.name]).grade is Grade.FAILED
        ]
        told += [f"{check.name}: {' and '.join(self.examined)} differ" for check in self.checks if self.differs(check)]
        told += [f"{name} left {key} behind" for name, each in self.examined.items() for key in each.left_behind]
        return told if self.examined or told else ["no client could be run"]

    def as_json(self) -> JsonObject:
        """For programs."""
        return {
            "ok": not self.faults,
            "clients": [*self.examined],
            "not_run": dict(self.not_run),
            "faults": [*self.faults],
            "checks": [
                {
                    "check": check.name,
                    "differs": self.differs(check),
                    "clients": {name: _fields(each.findings[check.name]) for name, each in self.examined.items()},
                }
                for check in self.checks
            ],
        }


def run(url: str, environment: Mapping[str, str], *, pages: bool, as_json: bool) -> int:
    """Prints what was found. Returns 1 if a check failed, if clients differ, or if something was left behind. Raises
    `CliError` for a URL that names no store."""
    missing = missing_folder(url)
    if missing is not None:
        raise NotThere(f"there is no folder {missing}")

    async def work() -> Report:
        return await report(url, environment, clients_of(url), pages=pages)

    found = carry_out(work)
    print(json_text(found.as_json()) if as_json else text(found))
    return 1 if found.faults else 0


async def report(
    url: str, environment: Mapping[str, str], clients: Sequence[StoreClient], *, pages: bool = False
) -> Report:
    """Runs every check by each client, one client after the other. Raises `ValueError` for a URL that names none."""
    folder = f"{FOLDER}/doctor-{SystemRuntime().ulid()}"
    examined: dict[str, Examined] = {}
    not_run: dict[str, str] = {}
    unreached: dict[str, str] = {}
    refused = needs_sdk(url, environment)
    for client in clients:
        reason = client.missing() or (refused if client.name == "wire" else None)
        if reason is not None:
            not_run[client.name] = reason
            continue
        store = client.open(url, environment)
        try:
            answers = None if client is DIRECT else _observed(store)
            reason = await _unreachable(store, url, folder)
            if reason is not None:
                unreached[client.name] = reason
            else:
                examined[client.name] = await examine(store, f"{folder}/{client.name}", answers, costly=pages)
        finally:
            await store.close()
    return Report(examined, not_run, unreached)


def _observed(store: ObjectStore) -> "list[Response]":
    """Every answer that will come, without its body."""
    from storage_backends.wire.bucket_store import BucketStore

    answers: list[Response] = []
    if isinstance(store, BucketStore):
        store.observe(lambda response: answers.append(replace(response, body=b"")))
    return answers


async def _unreachable(store: ObjectStore, url: str, folder: str) -> str | None:
    """Why the store can't be asked anything."""
    try:
        async with report_slow_store(url):
            await store.list(f"{folder}/")
    except StoreError as error:
        advice = f" ({denied(str(error), url)})" if isinstance(error, StoreDenied) else ""
        return f"{error}{advice}"
    return None


def text(found: Report) -> str:
    """A table by check and client, and what is wrong."""
    lines = [
        (
            check.name,
            *(f"{(finding := each.findings[check.name]).grade}: {_told(finding)}" for each in found.examined.values()),
            DIFFERS if found.differs(check) else "",
        )
        for check in found.checks
    ]
    blocks = [table(("CHECK", *(name.upper() for name in found.examined), ""), lines)] if lines else []
    told = [f"{name} was not run: {reason}" for name, reason in found.not_run.items()]
    told += found.faults or ["The store does what a catalog needs."]
    return "\n\n".join([*blocks, "\n".join(told)])


def _comparable(finding: Finding) -> tuple[Grade, str]:
    return finding.grade, finding.found


def _told(finding: Finding) -> str:
    return f"{finding.found} ({finding.measured})" if finding.measured else finding.found


def _fields(finding: Finding) -> JsonObject:
    return {"status": finding.grade, "found": finding.found, "measured": finding.measured}
