"""Messages that start workers: what is logged of one that could not be sent."""

import pytest

from arco_catalog.operations.work_queue import WorkQueue
from storage_backends import StoreUnavailable
from tests.support.fake_runtime import FakeRuntime


@pytest.mark.parametrize(
    ("error", "shown"), [(TimeoutError(), "TimeoutError"), (StoreUnavailable("no answer"), "no answer")]
)
async def test_a_message_that_is_not_sent_is_logged_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception, shown: str
) -> None:
    async def send(queue: WorkQueue, body: str, delay_ms: int = 0) -> None:
        raise error

    monkeypatch.setattr(WorkQueue, "send", send)
    await WorkQueue("http://localhost/queue", {}, FakeRuntime()).task_due("wh", 0)

    [record] = caplog.records
    assert record.getMessage().endswith(f"will find it: {shown}")
