"""What receipts are called by, now and in earlier versions (docs/design/reconciliation.md)."""

import pytest

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.receipt import (
    COMMITTED,
    PENDING,
    Stage,
    base_of,
    committed,
    encode,
    parse,
    pending,
    with_current_names,
)

BASE = MetadataFile("file:///t/metadata/00000-a.metadata.json", 1)
NEW = MetadataFile("file:///t/metadata/00001-b.metadata.json", 2)
DETAILS: JsonObject = {"entity_type": "table", "table_uuid": "U", "snapshot_id": 7, "source": {"kind": "Restored"}}
OLD: JsonObject = {
    "version": 1,
    "type": "IcebergCommitPending",
    "entity": "E",
    "entity_type": "table",
    "uuid": "U",
    "metadata_location": NEW.location,
    "metadata_ms": NEW.ms,
    "base": {"metadata_location": BASE.location, "metadata_ms": BASE.ms},
}
SEED = {"table_uuid", "commit_key", "event_id", "metadata_location", "snapshot_id", "source"}


def made(base: MetadataFile | None = BASE) -> JsonObject:
    return pending(entity="E", metadata=NEW, base=base, details=DETAILS)


def test_fields_have_the_names_of_the_seed() -> None:
    assert made().keys() >= SEED | {"base_metadata_location"}
    assert committed(made()).keys() >= SEED | {"previous_metadata_location"}
    assert (made()["version"], committed(made())["version"]) == (2, 2)
    assert "base_metadata_location" not in committed(made())


@pytest.mark.parametrize("base", [BASE, None])
def test_what_was_replaced_is_found_in_receipts_of_either_stage_and_version(base: MetadataFile | None) -> None:
    old: JsonObject = {**OLD, "base": OLD["base"] if base else None}
    assert [base_of(each) for each in (made(base), committed(made(base)), old, committed(old))] == [base] * 4


def test_the_committed_receipt_of_an_old_pending_one_is_what_its_writer_wrote() -> None:
    assert committed(OLD) == {**OLD, "type": "IcebergCommitCommitted"}
    assert parse(encode(committed(OLD)), "there") == committed(OLD)


@pytest.mark.parametrize(("stage", "name"), [(PENDING, "base"), (COMMITTED, "previous")])
def test_old_receipts_are_returned_with_current_names(stage: Stage, name: str) -> None:
    renamed = with_current_names(OLD, stage)
    assert (renamed["table_uuid"], renamed[f"{name}_metadata_location"], renamed[f"{name}_metadata_ms"]) == (
        "U",
        BASE.location,
        1,
    )
    assert not renamed.keys() & {"base", "uuid"}
    assert with_current_names({**OLD, "entity_type": "view"}, stage)["view_uuid"] == "U"
    assert with_current_names(made(), stage) == made()


@pytest.mark.parametrize("version", [0, 3, None, "2", [1]])
def test_a_receipt_of_an_unknown_version_is_not_read(version: object) -> None:
    reason = "version 3, and this program reads versions up to 2" if version == 3 else "a format that this version"
    with pytest.raises(InternalError, match=f"there has {reason}"):
        parse(dumps({**OLD, "version": version}), "there")  # type: ignore[dict-item]
