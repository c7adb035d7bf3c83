"""What the catalog relies on of an OpenLineage event, and how it keeps one."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.errors import BadRequest, InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.lineage import (
    MAX_DATASETS,
    MAX_NAME,
    Dataset,
    LineageEvent,
    Name,
    StoredEvent,
    decode_event,
    encode_event,
    event_digest,
    read_event,
)

RUN = "0190b7a5-1f7c-7c6a-b9ad-3c2c5c1b2f10"
JOB: JsonObject = {"namespace": "nightly", "name": "daily_orders"}
ORDERS: JsonObject = {
    "namespace": "s3://lake",
    "name": "warehouse/shop/orders",
    "facets": {
        "symlinks": {"identifiers": [{"namespace": "http://lake:8181", "name": "shop.orders", "type": "TABLE"}]},
        "version": {"datasetVersion": "4358109269898191911"},
    },
}
EVENT: JsonObject = {
    "eventType": "COMPLETE",
    "eventTime": "2026-11-22T10:00:00.123456789Z",
    "producer": "https://example.com/spark",
    "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    "run": {"runId": RUN.upper(), "facets": {"parent": {"run": {"runId": RUN}, "job": JOB}, "spark": {"x": [1]}}},
    "job": JOB,
    "inputs": [ORDERS],
    "outputs": [{"namespace": "file", "name": "/out"}],
}
WITHOUT_RUN: JsonObject = {name: EVENT[name] for name in ("eventTime", "producer", "schemaURL")}


def changed(path: Sequence[str | int], value: JsonValue, event: JsonValue = EVENT) -> JsonObject:
    """The event with another value at a place."""
    step, *rest = path
    if isinstance(event, list):
        assert isinstance(step, int)
        whole: JsonValue = [*event[:step], changed(rest, value, event[step]) if rest else value, *event[step + 1 :]]
        return whole  # type: ignore[return-value]  # an array inside of the event
    assert isinstance(event, dict)
    assert isinstance(step, str)
    return {**event, step: changed(rest, value, event.get(step, {})) if rest else value}


def test_a_run_is_read_with_its_datasets() -> None:
    assert read_event(EVENT) == LineageEvent(
        time_ms=1_795_341_600_123,
        state="COMPLETE",
        run=RUN,
        job=Name("nightly", "daily_orders"),
        inputs=(
            Dataset(
                Name("s3://lake", "warehouse/shop/orders"),
                (Name("http://lake:8181", "shop.orders"),),
                "4358109269898191911",
            ),
        ),
        outputs=(Dataset(Name("file", "/out")),),
        parent=RUN,
    )


def test_a_run_may_tell_the_one_that_started_it_and_its_parents() -> None:
    root = "0190b7a5-1f7c-7c6a-b9ad-000000000001"
    event = read_event(changed(["run", "facets", "parent", "root"], {"run": {"runId": root}, "job": JOB}))
    assert (event.parent, event.root) == (RUN, root)
    assert read_event(changed(["run", "facets", "parent", "root"], {"job": JOB})).root is None


def test_a_version_is_a_snapshot_where_it_is_a_number() -> None:
    assert read_event(EVENT).inputs[0].snapshot_id == 4358109269898191911
    for version in ("v7", "", None, "-1", "9" * 20, "٣"):
        assert Dataset(Name("a", "b"), version=version).snapshot_id is None


def test_an_event_may_be_about_a_job_or_a_dataset_alone() -> None:
    of_job = read_event({**WITHOUT_RUN, "job": JOB, "outputs": [ORDERS]})
    of_dataset = read_event({**WITHOUT_RUN, "dataset": ORDERS})

    assert (of_job.run, of_job.job, len(of_job.outputs)) == (None, Name("nightly", "daily_orders"), 1)
    assert (of_dataset.run, of_dataset.job, of_dataset.outputs) == (None, None, of_job.outputs)


@pytest.mark.parametrize(
    ("time", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t01:00:00.5+01:00", 500),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("0001-01-01T00:00:00+23:59", -62_135_683_140_000),
    ],
)
def test_times_are_those_of_rfc_3339(time: str, ms: int) -> None:
    assert read_event({**EVENT, "eventTime": time}).time_ms == ms


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["eventTime"], "yesterday", "Invalid event.eventTime: 'yesterday' is not a date"),
        (["eventTime"], "2026-11-22T10:00:00", "with an offset"),
        (["eventTime"], "2026-13-22T10:00:00Z", "not a date"),
        (["eventTime"], "2026-11-22T10:00:00Z" + "0" * 5_000, "not a date"),
        (["eventTime"], None, "missing required field 'eventTime'"),
        (["eventTime"], 1e400, "expected a string, found a number"),
        (["eventType"], "DONE", "Invalid event.eventType: expected 'START'"),
        (["producer"], None, "missing required field 'producer'"),
        (["schemaURL"], "", "must not be empty"),
        (["run"], [], "Invalid event.run: expected an object, found an array"),
        (["run", "runId"], "7", "Invalid event.run.runId: '7' is not a uuid"),
        (["run", "facets"], "x", "Invalid event.run.facets: expected an object"),
        (["run", "facets", "parent", "run", "runId"], 7, "Invalid event.run.facets.parent.run.runId"),
        (["run", "facets", "parent", "root"], [], "Invalid event.run.facets.parent.root: expected an object"),
        (["run", "facets", "parent", "root", "run", "runId"], 7, "Invalid event.run.facets.parent.root.run.runId"),
        (["job"], None, "missing required field 'job'"),
        (["job", "name"], "x" * (MAX_NAME + 1), "Invalid event.job.name: the string has 4,097 characters"),
        (["inputs"], {}, "Invalid event.inputs: expected an array"),
        (["inputs"], [{}] * (MAX_DATASETS + 1), "Invalid event.inputs: the array has 10,001 items"),
        (["inputs", 0, "namespace"], None, "Invalid event.inputs[0]: missing required field 'namespace'"),
        (["inputs", 0, "facets", "version", "datasetVersion"], 7, "facets.version.datasetVersion: expected a string"),
        (["inputs", 0, "facets", "symlinks", "identifiers"], [{}] * 101, "identifiers: the array has 101 items"),
        (["inputs", 0, "facets", "symlinks", "identifiers"], [7], "identifiers[0]: expected an object"),
    ],
)
def test_what_is_no_event_is_refused_with_its_place(path: Sequence[str | int], value: JsonValue, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read_event(changed(path, value))
    assert message in refused.value.message


def test_a_stored_event_comes_back_as_it_was_and_has_a_digest_of_its_bytes() -> None:
    huge: JsonObject = {**EVENT, "more": {"number": 10**30, "text": "\u0000"}}
    body = encode_event(StoredEvent(huge, "spark"))

    assert decode_event(body, "there") == StoredEvent(huge, "spark")
    assert encode_event(StoredEvent(dict(reversed(huge.items())), "spark")) == body
    assert event_digest(encode_event(StoredEvent(huge, "another"))) != event_digest(body)


def test_a_damaged_record_is_refused() -> None:
    for body in (b"", b"{}", b'{"version":2}', b'{"version":1,"event":{}}'):
        with pytest.raises(InternalError):
            decode_event(body, "there")
