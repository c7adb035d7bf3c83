"""`arco doctor URL`: checks through each client whether a store does what a catalog needs, and compares the clients."""

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
from storage_backends.conformance.examine import ExaminationReport, examine
from storage_backends.probe import FOLDER

if TYPE_CHECKING:  # imports httptools, which local stores do not need
    from storage_backends.wire.http1 import Response

DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Report:
    """What `arco doctor URL` found: the findings of each client that was run; the reasons why other clients were
    `not_run`, which are no errors; and why clients could not reach the store (`unreached`)."""

    examined: Mapping[str, ExaminationReport]
    not_run: Mapping[str, str]
    unreached: Mapping[str, str]

    @property
    def checks(self) -> Sequence[Check]:
        """The checks that at least one client made on this store."""
        return [check for check in CHECKS if any(check.name in each.findings for each in self.examined.values())]

    def differs(self, check: Check) -> bool:
        """Whether the clients have findings of different grades or words for a check; values that were measured may
        differ. On one store that is an error of a client."""
        return len({_comparable(each.findings[check.name]) for each in self.examined.values()}) > 1

    @property
    def faults(self) -> list[str]:
        """All errors, one on a line: clients that can't reach the store, failed checks, different findings of the
        clients, and objects that a client left behind; or one line if no client could be run. Empty without errors."""
        lines = [f"{name} cannot reach the store: {reason}" for name, reason in self.unreached.items()]
        lines += [
            f"{check.name}, by {name}: {_describe(finding)}"
            for check in self.checks
            for name, each in self.examined.items()
            if (finding := each.findings[check.name]).grade is Grade.FAILED
        ]
        lines += [f"{check.name}: {' and '.join(self.examined)} differ" for check in self.checks if self.differs(check)]
        lines += [f"{name} left {key} behind" for name, each in self.examined.items() for key in each.left_behind]
        return lines if self.examined or lines else ["no client could be run"]

    def as_json(self) -> JsonObject:
        """Returns the findings of all clients as JSON, with the errors, and `ok`, whether there are none."""
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
    """Checks the store of a URL through each of its clients, with `pages` also by the costly checks, and displays the
    findings. Returns 1 if a check failed, if clients differ, if a client can't reach the store or left objects behind,
    or if no client could be run; else 0. Raises `CliError` if the URL does not name a store or a variable for it is
    invalid, and `NotThere` if the folder of local files does not exist."""
    missing = missing_folder(url)
    if missing is not None:
        raise NotThere(
            f"the store can't be tested: there is no folder {missing}: make it, or check the URL of the store"
        )

    async def work() -> Report:
        return await report(url, environment, clients_of(url), pages=pages)

    found = carry_out(work)
    print(json_text(found.as_json()) if as_json else text(found))
    return 1 if found.faults else 0


async def report(
    url: str, environment: Mapping[str, str], clients: Sequence[StoreClient], *, pages: bool = False
) -> Report:
    """Runs all checks through each of these clients that can be used, one client after the other; with `pages` also the
    costly checks. Returns their findings, and the reasons why others were not run or could not reach the store. Raises
    `ValueError` if the URL does not name a store or a variable for it is invalid."""
    folder = f"{FOLDER}/doctor-{SystemRuntime().ulid()}"
    examined: dict[str, ExaminationReport] = {}
    not_run: dict[str, str] = {}
    unreached: dict[str, str] = {}
    sdk_reason = needs_sdk(url, environment)
    for client in clients:
        reason = client.missing() or (sdk_reason if client.name == "wire" else None)
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
    """Returns a list to which each later response of the store is added, without its body. It stays empty for a client
    that does not report responses."""
    from storage_backends.wire.bucket_store import BucketStore

    answers: list[Response] = []
    if isinstance(store, BucketStore):
        store.observe(lambda response: answers.append(replace(response, body=b"")))
    return answers


async def _unreachable(store: ObjectStore, url: str, folder: str) -> str | None:
    """Returns the reason why a first call, a listing, fails: the store does not answer, or denies it; None if it
    succeeds."""
    try:
        async with report_slow_store(url):
            await store.list(f"{folder}/")
    except StoreError as error:
        advice = f" ({denied(str(error), url)})" if isinstance(error, StoreDenied) else ""
        return f"{error}{advice}"
    return None


def text(found: Report) -> str:
    """Formats a table of findings by check and client, then the clients that were not run, then all errors, or one
    sentence without any."""
    rows = [
        (
            check.name,
            *(
                f"{(finding := each.findings[check.name]).grade}: {_describe(finding)}"
                for each in found.examined.values()
            ),
            DIFFERS if found.differs(check) else "",
        )
        for check in found.checks
    ]
    blocks = [table(("CHECK", *(name.upper() for name in found.examined), ""), rows)] if rows else []
    lines = [f"{name} was not run: {reason}" for name, reason in found.not_run.items()]
    lines += found.faults or ["The store does what a catalog needs."]
    return "\n\n".join([*blocks, "\n".join(lines)])


def _comparable(finding: Finding) -> tuple[Grade, str]:
    """Returns the part of a finding in which clients of the same store must agree."""
    return finding.grade, finding.found


def _describe(finding: Finding) -> str:
    """Returns a finding in words, and behind it in parentheses the value that was measured, if there is one."""
    return f"{finding.found} ({finding.measured})" if finding.measured else finding.found


def _fields(finding: Finding) -> JsonObject:
    """Returns a finding as JSON."""
    return {"status": finding.grade, "found": finding.found, "measured": finding.measured}
