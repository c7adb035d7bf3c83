"""Writes the data files and delete files of a scan as JSON (REST specification, `DataFile`, `DeleteFile`)."""

from collections.abc import Container, Mapping, Sequence

from arco_catalog.iceberg.content_files import ContentFile, FileContent
from arco_catalog.iceberg.expressions.values import value_json
from arco_catalog.iceberg.json import JsonObject, JsonValue

_CONTENT = {
    FileContent.DATA: "data",
    FileContent.POSITION_DELETES: "position-deletes",
    FileContent.EQUALITY_DELETES: "equality-deletes",
}


def file_json(file: ContentFile, partition_types: Sequence[str], stats_columns: Container[int] = ()) -> JsonObject:
    """Returns a data file or delete file as JSON, with the statistics of the columns `stats_columns`. `partition_types`
    are the types of its partition fields. Fields that the file does not have are left out. Bounds are in hexadecimal,
    the form that Iceberg's Java client reads."""
    partition = [
        None if value is None else value_json(name, value)
        for name, value in zip(partition_types, file.partition, strict=True)
    ]
    document: JsonObject = {
        "spec-id": file.spec_id,
        "content": _CONTENT[file.content],
        "file-path": file.path,
        "file-format": file.format,
        "partition": partition,
        "file-size-in-bytes": file.size,
        "record-count": file.statistics.record_count,
    }
    optional: Mapping[str, JsonValue] = {
        "key-metadata": None if file.key_metadata is None else file.key_metadata.hex().upper(),
        "split-offsets": None if file.split_offsets is None else [*file.split_offsets],
        "equality-ids": None if file.equality_ids is None else [*file.equality_ids],
        "sort-order-id": file.sort_order_id,
        "first-row-id": file.first_row_id,
        "referenced-data-file": file.referenced_data_file,
        "content-offset": file.content_offset,
        "content-size-in-bytes": file.content_size,
    }
    document.update((name, value) for name, value in optional.items() if value is not None)
    if stats_columns:
        document.update(_statistics(file, stats_columns))
    return document


def _statistics(file: ContentFile, columns: Container[int]) -> JsonObject:
    """Returns the sizes, counts and bounds of a file for these columns, as JSON. Statistics that the file does not have
    are left out; a map without these columns is empty."""
    found = file.statistics
    counts: Mapping[str, Mapping[int, int] | None] = {
        "column-sizes": file.column_sizes,
        "value-counts": found.value_counts,
        "null-value-counts": found.null_value_counts,
        "nan-value-counts": found.nan_value_counts,
    }
    bounds = {"lower-bounds": found.lower_bounds, "upper-bounds": found.upper_bounds}
    document: JsonObject = {}
    for name, numbers in counts.items():
        if numbers is not None:
            document[name] = _map({column: number for column, number in numbers.items() if column in columns})
    for name, values in bounds.items():
        if values is not None:
            document[name] = _map(
                {column: value.hex().upper() for column, value in values.items() if column in columns}
            )
    return document


def _map(values: Mapping[int, int] | Mapping[int, str]) -> JsonObject:
    """Returns a map as the REST API writes it: keys and values apart."""
    return {"keys": [*values], "values": [*values.values()]}
