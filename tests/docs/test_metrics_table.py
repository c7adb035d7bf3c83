"""The table of metrics in docs/observability.md is made from the code's."""

from pathlib import Path

import pytest

from tools import metrics_table


def test_the_table_of_metrics_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert metrics_table.main(["--check"]) == 0, capsys.readouterr().err


def test_a_table_that_is_not_current_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = metrics_table.PAGE.read_text()
    monkeypatch.setattr(metrics_table, "PAGE", tmp_path / "observability.md")
    metrics_table.PAGE.write_text(text.replace("| `arco_workers` | gauge |", "| `arco_workers` | counter |"))
    assert metrics_table.main(["--check"]) == 1
    assert metrics_table.main([]) == 0
    assert metrics_table.PAGE.read_text() == text
