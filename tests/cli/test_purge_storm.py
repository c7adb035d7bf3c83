"""Workers that are killed while they purge (docs/design/tasks.md#rule-5)."""

from pathlib import Path

from tests.cli.purge_storm import Storm, survive

SHORT = Storm(tables=4, manifests=12, files=10, workers=3, kills=6, seed=7)


def test_each_task_succeeds_once_and_nothing_is_left_or_gone_besides(tmp_path: Path) -> None:
    assert survive(f"file:{tmp_path}/store", {}, SHORT, tmp_path / "log").kills == SHORT.kills
