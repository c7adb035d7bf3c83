"""`make bench-calls` over each cloud, once."""

from dataclasses import replace

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


@pytest.fixture
def in_realms(monkeypatch: pytest.MonkeyPatch) -> list[calls.Budget]:
    """The rows about a realm, which the bench then counts alone."""
    rows = [budget for budget in calls.BUDGETS if budget.operation.startswith("in a realm")]
    monkeypatch.setattr(calls, "RUNS", 1)
    monkeypatch.setattr(calls, "BUDGETS", rows)
    return rows


def test_every_operation_in_a_realm_keeps_its_budget(
    in_realms: list[calls.Budget], capsys: pytest.CaptureFixture[str]
) -> None:
    assert calls.main(["--store", "memory:"]) == 0, capsys.readouterr().out
    assert len(in_realms) == 10


def test_an_operation_that_makes_one_call_too_many_is_shown(
    in_realms: list[calls.Budget], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calls, "BUDGETS", [replace(in_realms[0], calls=in_realms[0].calls - 1)])

    assert calls.main(["--store", "memory:"]) == 1
    assert capsys.readouterr().out.rstrip().endswith("OVER")
