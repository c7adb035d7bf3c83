"""Who may do what in the bucket: the conditions are computed for named permissions and objects."""

import pytest

from tests.infra.google.conftest import Values
from tests.infra.google.values import ADA, CHANGES, SPARK

API = "serviceAccount:lake-api@my-project.iam.gserviceaccount.com"
RECONCILE = "serviceAccount:lake-reconcile@my-project.iam.gserviceaccount.com"
TASKS = "serviceAccount:lake-tasks@my-project.iam.gserviceaccount.com"
COLLECT = "serviceAccount:lake-collect@my-project.iam.gserviceaccount.com"
BUCKET, ROOT = "there-already", "lakes/one/analytics"
STATE = f"{ROOT}/_catalog/core/manifest.json"
METADATA = f"{ROOT}/warehouse/sales/orders-1/metadata/00000-a.metadata.json"
DATA = f"{ROOT}/warehouse/sales/orders-1/data/a.parquet"
PROBE = "lakes/one/_probe/a"
EVERY_OBJECT = (STATE, METADATA, DATA, PROBE)


class Named:
    """The one attribute of a request that the conditions look at."""

    def __init__(self, bucket: str, key: str) -> None:
        self.name = f"projects/_/buckets/{bucket}/objects/{key}"


def may(values: Values, member: str, action: str, key: str, bucket: str = BUCKET, deployment: str = "folder") -> bool:
    """Whether a member may `get`, `create` or `delete` an object."""
    permission = f"storage.objects.{action}"
    return any(
        eval(_python(binding["condition"]), {"__builtins__": {}}, {"resource": Named(bucket, key)})
        for binding in values[deployment]["bindings"].values()
        if binding["member"] == member
        and binding["bucket"] == bucket
        and permission in values[deployment]["roles"][binding["role"]]
    )


def _python(condition: str | None) -> str:
    words = {"&&": "and", "||": "or", "startsWith": "startswith", "endsWith": "endswith"}
    text = condition or "True"
    for theirs, ours in words.items():
        text = text.replace(theirs, ours)
    return text


ALLOWED = {
    API: {("get", key) for key in (STATE, METADATA, PROBE)} | {("create", key) for key in (STATE, METADATA, PROBE)},
    RECONCILE: {("get", key) for key in (STATE, METADATA, PROBE)} | {("create", key) for key in (STATE, PROBE)},
    TASKS: {("get", key) for key in EVERY_OBJECT} | {("create", key) for key in (STATE, METADATA, PROBE)},
    COLLECT: {("get", key) for key in (STATE, METADATA, PROBE)} | {("create", key) for key in (STATE, PROBE)},
    SPARK: {(action, key) for action in ("get", "create") for key in (METADATA, DATA)},
    ADA: {("get", key) for key in EVERY_OBJECT} | {("create", key) for key in (STATE, PROBE)},
}


@pytest.mark.parametrize("member", ALLOWED)
def test_each_member_may_do_what_is_needed_and_nothing_else(values: Values, member: str) -> None:
    found = {(action, key) for action in ("get", "create") for key in EVERY_OBJECT if may(values, member, action, key)}

    assert found == ALLOWED[member]


@pytest.mark.parametrize("member", ALLOWED)
def test_who_may_write_an_object_may_replace_it(values: Values, member: str) -> None:
    """Cloud Storage wants storage.objects.delete for that."""
    for key in EVERY_OBJECT:
        purges = (member, key) in ((TASKS, DATA), (COLLECT, METADATA))
        assert may(values, member, "delete", key) == (may(values, member, "create", key) or purges)


def test_nobody_of_the_catalog_deletes_data_but_who_purges(values: Values) -> None:
    elsewhere = "tables/t/data/a.parquet"
    for member in (API, RECONCILE, TASKS, COLLECT):
        assert may(values, member, "delete", DATA) == (member == TASKS)
        assert may(values, member, "delete", elsewhere, "elsewhere") == (member == TASKS)
        assert not may(values, member, "delete", "other/a.parquet", "elsewhere")


def test_engines_can_neither_read_nor_harm_the_state(values: Values) -> None:
    for key in (STATE, PROBE, f"{ROOT}/_catalog/events/2026-01-01/iceberg/committed/a.json"):
        assert not any(may(values, SPARK, action, key) for action in ("get", "create", "delete"))


def test_who_collects_reaches_what_a_delegation_service_keeps(values: Values) -> None:
    task = "lakes/one/_catalog/tasks/a/1.json"

    assert [member for member in ALLOWED if may(values, member, "delete", task)] == [COLLECT, ADA]


@pytest.mark.parametrize(
    "key",
    [
        f"{ROOT}/_catalogue/a",
        f"{ROOT}-2/_catalog/core/manifest.json",
        "analytics/_catalog/core/manifest.json",
        f"{ROOT}/warehouse-2/t/metadata/a.metadata.json",
        "a.metadata.json",
    ],
)
def test_what_only_looks_like_it_is_not_granted(values: Values, key: str) -> None:
    assert not any(may(values, member, action, key) for member in ALLOWED for action in ("get", "create", "delete"))


def test_allowed_locations_in_other_buckets_are_granted_there(values: Values) -> None:
    assert may(values, SPARK, "create", "tables/t/data/a.parquet", "elsewhere")
    assert may(values, API, "create", "tables/t/metadata/a.metadata.json", "elsewhere")
    assert not may(values, API, "get", "tables/t/data/a.parquet", "elsewhere")
    assert not may(values, SPARK, "get", "other/a", "elsewhere")
    assert not may(values, SPARK, "get", STATE, "elsewhere")


@pytest.mark.parametrize("member", ALLOWED)
def test_everybody_can_tell_a_missing_object_from_a_forbidden_one(values: Values, member: str) -> None:
    lists = {
        (binding["bucket"], binding["condition"])
        for binding in values["folder"]["bindings"].values()
        if binding["member"] == member and binding["role"] == "list"
    }

    assert lists == {(BUCKET, None), ("elsewhere", None)}


def test_a_condition_is_no_more_complex_than_google_allows(values: Values) -> None:
    conditions = [binding["condition"] for each in values.values() for binding in each["bindings"].values()]

    assert all(text.count("&&") + text.count("||") <= 12 for text in conditions if text)


# With a realm

VENDING = "serviceAccount:lake-vending@my-project.iam.gserviceaccount.com"
REALM = "lakes/one/_realm"
PRINCIPALS, STATE_IN_REALM = f"{REALM}/core/manifest.json", f"{REALM}/catalogs/01J/_catalog/core/manifest.json"
OTHER_CATALOG = "lakes/one/catalogs/sales/t/data/a.parquet"
IN_A_REALM = (*EVERY_OBJECT, PRINCIPALS, STATE_IN_REALM, OTHER_CATALOG)
STATE_OF_BOTH = {STATE, PROBE, PRINCIPALS, STATE_IN_REALM}
REACHED = {
    API: ({*STATE_OF_BOTH, METADATA}, {*STATE_OF_BOTH, METADATA}),
    RECONCILE: ({*STATE_OF_BOTH, METADATA}, {STATE, PROBE, STATE_IN_REALM}),
    TASKS: ({*STATE_OF_BOTH, METADATA, DATA, OTHER_CATALOG}, {STATE, METADATA, PROBE, STATE_IN_REALM}),
    COLLECT: ({*STATE_OF_BOTH, METADATA}, STATE_OF_BOTH),
    VENDING: ({METADATA, DATA, OTHER_CATALOG}, {METADATA, DATA, OTHER_CATALOG}),
    ADA: ({*STATE_OF_BOTH, METADATA, DATA, OTHER_CATALOG}, STATE_OF_BOTH),
    SPARK: (set(), set()),
}
"""What each may read, and what write."""
PURGED = {TASKS: {DATA, OTHER_CATALOG}, COLLECT: {METADATA}}
"""What each may delete besides."""


@pytest.mark.parametrize("member", REACHED)
def test_in_a_realm_files_are_reached_by_tokens_of_one_account_and_state_by_none_of_its(
    values: Values, member: str
) -> None:
    reads, writes = REACHED[member]

    for action, expected in (("get", reads), ("create", writes), ("delete", writes)):
        found = {key for key in IN_A_REALM if may(values, member, action, key, deployment="realm")}
        purged = PURGED.get(member, set()) if action == "delete" else set()
        assert found == expected | purged, action


def test_where_tokens_are_vended_engines_have_no_binding_in_the_bucket(values: Values) -> None:
    members = {binding["member"] for binding in values["realm"]["bindings"].values()}

    assert members == {API, RECONCILE, TASKS, COLLECT, VENDING, ADA}
    assert VENDING not in {binding["member"] for binding in values["folder"]["bindings"].values()}


def test_the_account_of_tasks_publishes_events_to_the_topics_that_were_named(values: Values) -> None:
    of_tasks = values["folder"]["members"]["tasks"]
    topic = {"project": "another-project", "topic": "changes", "member": of_tasks}
    assert values["folder"]["event_topics"] == {CHANGES: topic}
    assert values["folder"]["environment"]["ARCO_EVENTS"] == "true"
    assert values["fresh"]["event_topics"] == {}
    assert values["fresh"]["environment"]["ARCO_EVENTS"] == "false"
