"""`make bench-calls` over each cloud, once."""

import pytest

from tools.bench import calls


@pytest.mark.parametrize("kind", ["gs", pytest.param("azure", marks=pytest.mark.needs("node", "npm"))])
def test_every_operation_keeps_its_budget_on_every_cloud(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calls, "RUNS", 1)
    monkeypatch.setattr(calls, "BUDGETS", calls.BUDGETS[:3])
    assert calls.main(["--store", kind]) == 0, capsys.readouterr().out
