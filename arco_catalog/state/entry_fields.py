"""The fields of an entry of a manifest and of its file (table spec, "Manifests"), with their Avro types, and the
readers of those that plans need."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypedDict

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.avro_decoder import reader_of
from arco_catalog.state.avro_schema import Unreadable
from arco_catalog.state.avro_skippers import Patterns
from arco_catalog.state.avro_values import Read, named_fields
from arco_catalog.state.entry_statistics import bounds_reader, counts_reader

_NUMBERS: Final = (
    *("status", "snapshot_id", "sequence_number", "file_sequence_number", "content", "record_count"),
    *("file_size_in_bytes", "sort_order_id", "first_row_id", "content_offset", "content_size_in_bytes"),
)
_COUNTS: Final = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS: Final = ("lower_bounds", "upper_bounds")
_FORMS: Final = {
    **dict.fromkeys(_NUMBERS, ("int", "long")),
    **dict.fromkeys(("file_path", "file_format", "referenced_data_file"), ("string",)),
    "key_metadata": ("bytes",),
    **dict.fromkeys(("split_offsets", "equality_ids"), ("array of int", "array of long")),
}
"""The Avro types that the fields of an entry may have, besides null."""


class EntryValues(TypedDict, total=False):
    """The fields of an entry and its file that are decoded, of the types that `field_readers` checks. One may be
    missing or null unless it is in `_REQUIRED`."""

    status: int
    snapshot_id: int | None
    sequence_number: int | None
    file_sequence_number: int | None
    content: int | None
    file_path: str
    file_format: str
    record_count: int
    file_size_in_bytes: int
    column_sizes: Mapping[int, int] | None
    value_counts: Mapping[int, int] | None
    null_value_counts: Mapping[int, int] | None
    nan_value_counts: Mapping[int, int] | None
    lower_bounds: Mapping[int, bytes] | None
    upper_bounds: Mapping[int, bytes] | None
    key_metadata: bytes | None
    split_offsets: Sequence[int] | None
    equality_ids: Sequence[int] | None
    sort_order_id: int | None
    first_row_id: int | None
    referenced_data_file: str | None
    content_offset: int | None
    content_size_in_bytes: int | None


_REQUIRED: Final = frozenset({"status", "partition", "file_path", "file_format", "record_count", "file_size_in_bytes"})


def flat_fields(schema: JsonObject) -> Sequence[tuple[str, JsonValue]]:
    """Returns the names and types of the fields of an entry, with the fields of its file in place of `data_file`.
    Raises `Unreadable` if a required field is missing in the result, or two fields have one name."""
    found: list[tuple[str, JsonValue]] = []
    for name, of in named_fields(schema):
        if name == "data_file" and isinstance(of, dict) and of.get("type") == "record":
            found += named_fields(of)
        else:
            found.append((name, of))
    names = [name for name, _ in found]
    if len(set(names)) != len(names) or not {*names} >= _REQUIRED:
        raise Unreadable("the entries of the manifest lack a field that each must have, or have one twice")
    return found


def field_readers(
    fields: Sequence[tuple[str, JsonValue]], columns: Collection[int] | None, patterns: Patterns
) -> Mapping[str, Read]:
    """Returns the functions that read the fields of an entry that plans need, by name. Statistics are read of these
    `columns`, of all if that is None; if it is empty, they have no reader. Fields without a reader are to be skipped,
    except the partition, which `PartitionReader` reads. Raises `Unreadable` if a field that gets a reader has a wrong
    type, or may be null although it is required."""
    found: dict[str, Read] = {}
    for name, of in fields:
        if name in _FORMS:
            found[name] = _checked_reader(name, of)
        elif name in _COUNTS + _BOUNDS and (columns is None or columns):
            found[name] = (bounds_reader if name in _BOUNDS else counts_reader)(of, columns, patterns)
    return found


def _checked_reader(name: str, of: JsonValue) -> Read:
    """Returns the reader of the field `name` of an entry. Raises `Unreadable` if the field has a type that is
    not in `_FORMS`, where int and long count alike, or may be null although it is required."""
    branches = of if isinstance(of, list) else [of]
    if {*map(_form, branches)} <= {*_FORMS[name], *(() if name in _REQUIRED else ("null",))}:
        return reader_of(of)
    raise Unreadable(
        f"the field {name} of the manifest's entries has a wrong type, or may be null although it is required"
    )


def _form(of: JsonValue) -> str:
    """Returns the name of an Avro type as `_FORMS` has them, by which types are compared; that of an array names the
    items, too: `array of int`."""
    name = of if isinstance(of, str) else of.get("type") if isinstance(of, dict) else None
    return f"array of {_form(of['items'])}" if name == "array" and isinstance(of, dict) else str(name)
