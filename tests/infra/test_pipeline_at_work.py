"""The pipeline's job under the policies that the plan gives its role: each call to the store is judged as S3 judges it.
Files of tables PyIceberg writes, by what the catalog gives it for them."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from arco_catalog.state.paths import Paths
from reconciler.catalog_config import open_by_environment
from reconciler.compact.driver import compact
from reconciler.executors import LocalExecutor
from reconciler.system import tables
from reconciler.system.opened import SystemTables
from storage_backends import (
    ANY,
    Cursor,
    Deleted,
    Found,
    Missing,
    ObjectStore,
    Outcome,
    Page,
    StoreDenied,
    Unchanged,
    Version,
    When,
)
from tests.compact.lake import ServedLake
from tests.infra.deployments import WITH_JOBS
from tests.infra.evaluation import Policies, Request
from tests.infra.policies import of_bucket, statements
from tests.infra.terraform import Plan
from tools.demo.server import WAREHOUSE, serving
from tools.support.wrapped_stores import DelayingStore

BUCKET = "arn:aws:s3:::lake-123456789012-us-east-1"
ROLE = "arn:aws:iam::123456789012:role/lake-pipeline"
DELETES = "s3:DeleteObject"


class JudgedFolder(DelayingStore):
    """A store in a folder, whose catalog takes the place of the deployment's: policies are asked before each call."""

    def __init__(self, inner: ObjectStore, policies: Policies, denied: Sequence[str] = ()) -> None:
        super().__init__(inner, 0)
        self._policies = policies
        self._denied = denied

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """What is missing is told from what is forbidden only to who may list."""
        self._judge("s3:GetObject", key)
        answer = await super().get(key, if_changed_from)
        if isinstance(answer, Missing):
            self._judge("s3:ListBucket")
        return answer

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        self._judge("s3:GetObject", key)
        return await super().get_range(key, start, length)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        self._judge("s3:PutObject", key)
        return await super().put(key, body, when)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        self._judge(DELETES, key)
        return await super().delete(key, when)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        for key in keys:
            self._judge(DELETES, key)
        return await super().delete_many(keys)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        self._judge("s3:ListBucket", prefix=prefix)
        return await super().list(prefix, after)

    def _judge(self, action: str, key: str = "", prefix: str | None = None) -> None:
        resource = f"{BUCKET}/{_deployed(key)}" if key else BUCKET
        context = {} if prefix is None else {"s3:prefix": _deployed(prefix)}
        if action in self._denied or not self._policies.allow(Request(ROLE, action, resource, context)):
            raise StoreDenied(f"not allowed: {action} {key or prefix}")


def _deployed(key: str) -> str:
    """A key of the served catalog, in the deployment."""
    return f"main/{key.removeprefix(f'{WAREHOUSE}/')}" if key.startswith(f"{WAREHOUSE}/") else key


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[ServedLake]:
    """A table with two commits, and a mark on a day."""
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log") as server:
        made = ServedLake(server)
        made.append("t")
        made.append("t")
        yield made


def of_the_job(plan: Plan, deployment: str) -> Policies:
    """The policy of the job's role, without those of an engine; and the bucket's."""
    resources = plan.deployment(deployment)
    [own] = [found for found in resources if found.address == "aws_iam_role_policy.pipeline[0]"]
    return Policies(statements(own.address, own.values["policy"]), of_bucket(resources))


async def run(lake: ServedLake, policies: Policies, denied: Sequence[str] = ()) -> int:
    """Runs `compact`; how many objects it could not read."""
    config = replace(lake.config, opens=lambda url: JudgedFolder(open_by_environment(url), policies, denied))
    return (await compact(SystemTables(lake.mortal(), WAREHOUSE), config, LocalExecutor())).unreadable_count


@pytest.mark.parametrize("deployment", WITH_JOBS)
async def test_compact_tells_everything_and_removes_a_mark(plan: Plan, lake: ServedLake, deployment: str) -> None:
    mark = Paths(WAREHOUSE).late_mark(date(2026, 1, 1))
    lake.put(mark, b"{}")
    _age(lake, mark)

    assert await run(lake, of_the_job(plan, deployment)) == 0

    lake.assert_each_event_once()
    assert [(row["data_files"], row["unreadable"]) for row in lake.rows(tables.FILES_HEALTH)] == [(2, None)]
    assert not lake.there(mark)


async def test_without_the_right_to_remove_marks_it_fails(plan: Plan, lake: ServedLake) -> None:
    """So the store of these tests does judge."""
    mark = Paths(WAREHOUSE).late_mark(date(2026, 1, 1))
    lake.put(mark, b"{}")
    _age(lake, mark)

    with pytest.raises(StoreDenied, match=DELETES):
        await run(lake, of_the_job(plan, "signed"), [DELETES])


def _age(lake: ServedLake, key: str) -> None:
    """A mark goes that was there for an hour."""
    os.utime(lake.folder.parent / key, (1, 1))
