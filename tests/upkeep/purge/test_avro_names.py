"""A reference to a type in an Avro schema is resolved as Avro's specification has it ("Names"): a name without dots is
in the namespace of the type around it. fastavro, which reads the same files, agrees."""

import io

import fastavro
import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.avro_schema import Unreadable, check_schema
from tools.support.avro_files import avro_file


def fixed(name: str, size: int = 4, **more: JsonValue) -> JsonObject:
    """A type of `size` bytes."""
    return {"type": "fixed", "name": name, "size": size, **more}


def record(name: str, *types: JsonValue, **more: JsonValue) -> JsonObject:
    """A record with fields `f1`, `f2` and so on of these types."""
    fields: list[JsonValue] = [{"name": f"f{place}", "type": each} for place, each in enumerate(types, 1)]
    return {"type": "record", "name": name, "fields": fields, **more}


def read(schema: JsonObject, data: bytes) -> list[object]:
    """The record in these bytes, by the schema with all types written out."""
    return [fastavro.schemaless_reader(io.BytesIO(data), check_schema(schema, {}).writer, None)]


@pytest.mark.parametrize(
    ("schema", "size"),
    [
        pytest.param(record("R", fixed("F"), "F", "a.F", namespace="a"), 12, id="the namespace of the record"),
        pytest.param(record("a.R", fixed("F"), "F", "a.F"), 12, id="the namespace in the name of the record"),
        pytest.param(record("a.R", record("S", fixed("F")), "F", "a.F"), 12, id="the namespace two levels above"),
        pytest.param(record("R", fixed("c.F"), "c.F", namespace="a"), 8, id="a name with its own namespace"),
        pytest.param(record("R", fixed("c.F", namespace="d"), "c.F"), 8, id="a namespace beside such a name"),
        pytest.param(record("R", fixed("F"), fixed("a.F", 8), "F", "a.F"), 24, id="one name with and without"),
        pytest.param(
            record("R", fixed("F"), record("S", fixed("F", 8), namespace="b"), "F", "b.F", "b.S", namespace="a"),
            32,
            id="one name in two namespaces",
        ),
        pytest.param(
            record("R", record("a.S", fixed("F"), "F"), fixed("F", 8), "a.S"),
            24,
            id="a type with references, used in another namespace",
        ),
        pytest.param(
            record("R", {"type": "array", "items": fixed("F")}, {"type": "map", "values": "a.F"}, namespace="a"),
            2,
            id="the namespace around an array and a map",
        ),
        pytest.param(record("R", ["null", fixed("F")], ["null", "a.F"], namespace="a"), 2, id="around a union"),
    ],
)
def test_a_reference_leads_to_the_type_of_the_specification(schema: JsonObject, size: int) -> None:
    data = bytes(size) if size == 2 else bytes(range(size))  # two zeros: two empty collections, or two nulls
    expected = [*fastavro.reader(io.BytesIO(avro_file(schema, [(1, data)])))]
    assert read(schema, data) == expected


def test_a_reference_to_a_type_without_a_namespace_is_resolved_inside_one_as_java_does() -> None:
    schema = record("R", fixed("F"), record("a.S", "F"))
    assert read(schema, b"onlytest") == [{"f1": b"only", "f2": {"f1": b"test"}}]


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(record("R", record("a.S", fixed("F")), "F"), id="without a namespace, and the type has one"),
        pytest.param(record("R", fixed("F", namespace="a"), "b.F"), id="with the namespace of another type"),
    ],
)
def test_a_reference_to_no_type_is_an_error(schema: JsonObject) -> None:
    with pytest.raises(Unreadable, match="which it does not define before that"):
        read(schema, bytes(8))
