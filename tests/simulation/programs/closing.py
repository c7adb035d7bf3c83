"""What must be true in the end: receipts, holds, and nothing left of what is over."""

from collections.abc import Mapping

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.state import receipt
from arco_catalog.state.fields import text, texts
from arco_catalog.state.index import location_key
from arco_catalog.state.paths import Paths, commit_key
from tests.simulation.programs.history import History
from tests.simulation.programs.recorder import PATHS


def closed(
    history: History,
    objects: Mapping[str, bytes],
    paths: Paths = PATHS,
    *,
    reconciled: bool,
    collected: bool = False,
) -> list[str]:
    """What is wrong with the receipts: every file of ours that became current has one path, after a last walk of the
    reconciler one committed receipt, and no other file has. Where receipts may have been `collected`, only those that
    are left are examined."""
    wrong: list[str] = []
    live: dict[str, tuple[str, str, int]] = {}
    for entity, file, ms in history.current:
        key = commit_key(entity, file)
        live[paths.receipt(receipt.COMMITTED, key, ms)] = entity, file, ms
        if not collected and paths.receipt(receipt.PENDING, key, ms) not in objects:
            wrong.append(f"{file} of {entity} has no pending receipt")
    committed = {key for key in objects if key.startswith(paths.events) and "/iceberg/committed/" in key}
    may_be_left = {
        paths.receipt(receipt.COMMITTED, commit_key(entity, file), ms) for entity, file, ms in history.collected_before
    }
    for key in sorted(committed - set(live) - may_be_left):
        wrong.append(f"a committed receipt of what never became current: {_said(objects[key])}")
    for key in sorted(committed & set(live)):
        pending = objects.get(key.replace("/committed/", "/pending/"))
        if pending is not None and objects[key] != receipt.encode(receipt.committed(_json(pending))):
            wrong.append(f"the committed receipt of {live[key]} says something else than the pending one")
    if reconciled and not collected:
        wrong += [f"{live[key]} has no committed receipt" for key in sorted(set(live) - committed)]
    return wrong


def left_over(history: History, entries: Mapping[str, JsonObject]) -> list[str]:
    """What is wrong with HEAD when all is quiet: intents of nobody, and holds that are not those of the living."""
    wrong: list[str] = []
    held: set[str] = set()
    for key, entry in entries.items():
        if "transaction" in entry:
            wrong.append(f"an intent of {entry['transaction']} is left on {key!r}")
        if key.startswith("relation\n"):
            held |= {location_key(location, text(entry, "entity")) for location in texts(entry, "locations")}
        if key.startswith("tombstone\n") and entry.get("state") == "purging":
            held |= {location_key(location, text(entry, "entity")) for location in texts(entry, "locations")}
    found = {key for key in entries if key.startswith("location\n")}
    wrong += [f"{key!r} is not held" for key in sorted(held - found) if not _purging(entries, key)]
    wrong += [f"{key!r} is held for nobody" for key in sorted(found - held)]
    return wrong


def _purging(entries: Mapping[str, JsonObject], key: str) -> bool:
    entity = key.rpartition("\n")[2]
    return any(text(entry, "entity") == entity for name, entry in entries.items() if name.startswith("tombstone\n"))


def _said(body: bytes) -> str:
    return str(_json(body).get("metadata_location"))


def _json(body: bytes) -> JsonObject:
    document = loads(body)
    assert isinstance(document, dict)
    return document
