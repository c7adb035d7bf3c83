"""The names of stored OpenLineage events show which events may be about a table."""

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.lineage_datasets import DatasetRef
from arco_catalog.planning.lineage_names import (
    MAX_DATASET_TAGS,
    NO_TAGS,
    dataset_tags,
    digest_in,
    event_name,
    table_tags,
    tags_in,
)
from arco_catalog.state.lineage import StoredEvent, encode_event, event_digest, read_event
from tests.state.test_lineage import EVENT

ORDERS = table_tags(("shop",), "orders", ["s3://lake/warehouse/shop/orders"])


def name_of(event: JsonObject, principal: str = "spark") -> str:
    return event_name(encode_event(StoredEvent(event, principal)), read_event(event), principal)


def test_a_name_has_the_digest_and_tags_of_run_sender_and_datasets() -> None:
    name = name_of(EVENT)
    other: JsonObject = {**EVENT, "eventType": "START", "inputs": []}

    assert digest_in(name) == event_digest(encode_event(StoredEvent(EVENT, "spark")))
    assert tags_in(name).may_name(ORDERS)
    assert not tags_in(name).may_name(table_tags(("shop",), "other", ["s3://lake/other"]))
    assert tags_in(name_of(other)).run == tags_in(name).run
    assert not tags_in(name_of(other)).may_name(ORDERS)
    assert tags_in(name_of(EVENT, "flink")).run != tags_in(name).run
    assert tags_in(name_of(EVENT, "flink")).sender != tags_in(name).sender


def test_a_dataset_has_the_tags_of_each_table_that_it_may_mean() -> None:
    for dataset in (
        DatasetRef("s3://lake", "warehouse/shop/orders"),
        DatasetRef("s3a://lake", "/warehouse/shop/orders/"),
        DatasetRef("http://lake:8181", "shop.orders"),
        DatasetRef("iceberg://lake", "any_catalog.shop.orders"),
        DatasetRef("trino://lake:8080", "any_catalog.shop.orders"),
        DatasetRef("kafka://broker", "clicks", (("http://lake:8181", "shop.orders"),)),
    ):
        assert not ORDERS.isdisjoint(dataset_tags(dataset)), dataset
    for dataset in (
        DatasetRef("s3://lake", "warehouse/shop/orders2", (("http://lake:8181", "shop.orders"),)),
        DatasetRef("kafka://broker", "shop.orders"),
        DatasetRef("postgres://db", "shop.orders"),
    ):
        assert ORDERS.isdisjoint(dataset_tags(dataset)), dataset


def test_an_event_with_too_many_datasets_may_be_about_any_and_a_name_fits_into_a_file_system() -> None:
    def inputs(number: int) -> list[JsonValue]:
        return [{"namespace": "s3://lake", "name": f"t{place}"} for place in range(number)]

    full = name_of({**EVENT, "inputs": inputs(MAX_DATASET_TAGS - 1)})
    more = name_of({**EVENT, "inputs": inputs(MAX_DATASET_TAGS)})

    assert not tags_in(full).may_name(ORDERS)
    assert tags_in(more).may_name(ORDERS)
    assert len(f"{full}.json") <= 255


def test_a_name_without_tags_may_be_about_any() -> None:
    assert tags_in("0" * 64) == tags_in("") == tags_in("0-") == tags_in("0-abcd") == NO_TAGS
    assert NO_TAGS.may_name(ORDERS)
