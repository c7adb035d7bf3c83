"""`make bench-calls` over each cloud, once."""

import pytest

from tests.support.gcs_protocol_fake import gcs_protocol_fake
from tools.bench import calls
from tools.support.environment import exported


@pytest.fixture
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "RUNS", 1)
    monkeypatch.setattr(calls, "BUDGETS", calls.BUDGETS[:3])


def test_every_operation_keeps_its_budget_on_gcs(few_runs: None, capsys: pytest.CaptureFixture[str]) -> None:
    with gcs_protocol_fake() as gcs, exported(gcs.environment):
        gcs.make_bucket("arco-bench")
        assert calls.main(["--store", "gs://arco-bench/calls"]) == 0, capsys.readouterr().out


@pytest.mark.needs("node", "npm")
def test_every_operation_keeps_its_budget_on_azure(few_runs: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert calls.main(["--store", "az://arco-bench/calls"]) == 0, capsys.readouterr().out
