"""The page of bounds is made from the code's constants, and the worst documents are within them."""

from pathlib import Path

import pytest

from arco_catalog.authentication.claims import MAX_TOKEN
from arco_catalog.http.options import MAX_BODY_BYTES
from arco_catalog.http.requests import MAX_VALUES
from arco_catalog.iceberg.json import count_values
from arco_catalog.operations.lineage import MAX_EVENT_BYTES
from arco_catalog.state import avro
from arco_catalog.state.memory import MAX_METADATA_BYTES, max_metadata_values
from tools import bounds
from tools.support import worst_callers
from tools.support import worst_documents as worst

DOCUMENT = b'{"format-version":2}'
BEYOND = {"more values than a body may have", "45 MB of empty arrays"}
FULL = 0.95
"""How much of its bound a document uses, in bytes or in values."""


def test_the_page_of_bounds_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert bounds.main(["--check"]) == 0, capsys.readouterr().err


def test_a_page_of_bounds_that_is_not_current_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "PAGE", tmp_path / "bounds.md")
    monkeypatch.setattr(avro, "MAX_FILE_RECORDS", 7)
    assert bounds.main(["--check"]) == 1
    assert bounds.main([]) == 0
    assert bounds.main(["--check"]) == 0


@pytest.mark.parametrize("name", worst.BODIES)
def test_the_worst_bodies_use_their_bound(name: str) -> None:
    body = worst.BODIES[name]()
    size, values = len(body) / MAX_BODY_BYTES, count_values(body) / MAX_VALUES
    assert size <= 1
    assert (values > 1) == (name in BEYOND)
    assert max(size, values) > FULL or name == "updates of one commit"


@pytest.mark.parametrize("name", worst.METADATA)
def test_the_worst_metadata_uses_its_bound(name: str) -> None:
    document = worst.METADATA[name](DOCUMENT)
    size, values = len(document) / MAX_METADATA_BYTES, count_values(document) / max_metadata_values(MAX_METADATA_BYTES)
    assert size <= 1
    assert (values > 1) == (name in BEYOND)
    assert max(size, values) > FULL


def test_the_worst_of_the_rest_is_within_its_bounds() -> None:
    assert MAX_EVENT_BYTES * FULL < len(worst.event()) <= MAX_EVENT_BYTES
    assert [len(token) for token in worst_callers.tokens()] == [
        MAX_TOKEN,
        MAX_TOKEN,
        MAX_TOKEN,
        len("e30..AAAA") + 16_000,
    ]
    assert len(worst.unpacking_to_more()) < 1 << 20
