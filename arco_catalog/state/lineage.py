"""OpenLineage events: the fields that the catalog reads, and the stored form (docs/design/lineage.md).

An event describes a run of a job with the datasets that it read and has written, or a job or dataset alone. The catalog
checks only the fields from which it makes lineage, and that `producer` and `schemaURL` are there; all others, such as
further facets, are saved as they were sent. The shapes
are those of the OpenLineage specification, version 2-0-2.
"""

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.iceberg.primitives import UUID
from arco_catalog.iceberg.shapes import NAME, OBJECT, STRING, Fields, ShapeError, list_of, one_of, quoted
from arco_catalog.state.fields import mapping, parse_record, text
from storage_backends.lazy_dataclass import dataclass

MAX_NAME = 4_096
"""The limit of a name in characters. Names of datasets are locations, often with a query in them."""
MAX_DATASETS = 10_000
"""The limit of inputs, and of outputs, of one event."""
MAX_IDENTIFIERS = 100
"""The limit of further names of one dataset."""
STATES: Final = ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")

_DAY, _HOUR = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}"
_TIME = re.compile(rf"{_DAY}[Tt]{_HOUR}:[0-9]{{2}}(\.[0-9]{{1,12}})?([Zz]|[+-]{_HOUR})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a job or dataset, in a namespace of OpenLineage: `s3://bucket`, or the name of a scheduler."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset in an OpenLineage event, which a run read or has written. `also` are its further names, from the facet
    `symlinks`: engines name an Iceberg table by its location, and add its identifier there. `version` is that of the
    facet `version`, for an Iceberg table the id of a snapshot."""

    name: Name
    also: tuple[Name, ...] = ()
    version: str | None = None

    @property
    def snapshot_id(self) -> int | None:
        """The id of the Iceberg snapshot that was read or written, which is the dataset's version; None if that is not
        a number of 1 to 19 digits."""
        version = self.version
        return int(version) if version is not None and re.fullmatch(r"[0-9]{1,19}", version) else None


@dataclass(frozen=True, slots=True)
class LineageEvent:
    """The fields of an OpenLineage event from which lineage is made. `run` is None for an event about a job, and `job`
    is, too, for one about a dataset, which is then the only output. The facet `parent` gives `parent`, the run that
    this one is a part of, and `root`, the first run in that chain: for a query of Spark its application, and the run
    that started that."""

    time_ms: int
    state: str | None
    run: str | None
    job: Name | None
    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()
    parent: str | None = None
    root: str | None = None


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An OpenLineage event as it was sent, and the principal that sent it."""

    event: JsonObject
    principal: str


def read_event(event: JsonObject) -> LineageEvent:
    """Reads the fields of an OpenLineage event that lineage needs, and checks others that it must have. Raises
    `BadRequest`, which names the field, if it is malformed or exceeds a limit."""
    fields = Fields(event, "event")
    time_ms = fields.required("eventTime", _time)
    for name in ("producer", "schemaURL"):
        fields.required(name, _text)
    run, dataset = fields.optional("run", OBJECT), fields.optional("dataset", OBJECT)
    if run is None and dataset is not None:
        return LineageEvent(time_ms, None, None, None, outputs=(_dataset(Fields(dataset, "event.dataset")),))
    job = _name(Fields(fields.required("job", OBJECT), "event.job"))
    inputs, outputs = _datasets(fields, "inputs"), _datasets(fields, "outputs")
    if run is None:
        return LineageEvent(time_ms, None, None, job, inputs, outputs)
    of_run = Fields(run, "event.run")
    state, run_id = fields.optional("eventType", one_of(*STATES)), of_run.required("runId", _uuid)
    parent = _facet(of_run, "parent")
    root = Fields(parent.optional("root", OBJECT) or {}, f"{parent.at}.root")
    return LineageEvent(time_ms, state, run_id, job, inputs, outputs, _run(parent), _run(root))


def encode_event(stored: StoredEvent) -> bytes:
    """Returns the bytes of a stored OpenLineage event. Equal events of one sender have the same ones."""
    return dumps({"version": 1, "event": stored.event, "principal": stored.principal}, sort_keys=True)


def event_digest(body: bytes) -> str:
    """Returns the digest of a stored OpenLineage event, with which its name begins: SHA-256, in hex, of its bytes."""
    return hashlib.sha256(body).hexdigest()


def decode_event(body: bytes, where: str) -> StoredEvent:
    """Reads a stored OpenLineage event. Raises `InternalError` if it is no record of this version, which names `where`
    it is saved, and one that names only the field if the principal is missing."""
    document = parse_record(body, where)
    return StoredEvent(mapping(document, "event"), text(document, "principal"))


def _datasets(fields: Fields, field: str) -> tuple[Dataset, ...]:
    """Reads the datasets in a field of an OpenLineage event; empty without the field. Raises as `read_event` does."""
    found = fields.optional(field, list_of(OBJECT)) or []
    _refuse_more(f"{fields.at}.{field}", len(found), MAX_DATASETS)
    return tuple(_dataset(Fields(each, f"{fields.at}.{field}[{place}]")) for place, each in enumerate(found))


def _dataset(fields: Fields) -> Dataset:
    """Reads a dataset of an OpenLineage event: the name, other names, and the version. Raises as `read_event` does."""
    symlinks, version = _facet(fields, "symlinks"), _facet(fields, "version")
    identifiers = symlinks.optional("identifiers", list_of(OBJECT)) or []
    _refuse_more(f"{symlinks.at}.identifiers", len(identifiers), MAX_IDENTIFIERS)
    also = (_name(Fields(each, f"{symlinks.at}.identifiers[{place}]")) for place, each in enumerate(identifiers))
    return Dataset(_name(fields), tuple(also), version.optional("datasetVersion", _text))


def _name(fields: Fields) -> Name:
    """Reads the namespace and the name of a job or dataset of OpenLineage, which both must be there. Raises as
    `read_event` does."""
    return Name(fields.required("namespace", _text), fields.required("name", _text))


def _run(fields: Fields) -> str | None:
    """Reads the id of the run to which a facet of an OpenLineage event refers, in lower case; None if the facet has no
    run. Raises as `read_event` does."""
    run = fields.optional("run", OBJECT)
    return None if run is None else Fields(run, f"{fields.at}.run").required("runId", _uuid)


def _facet(fields: Fields, name: str) -> Fields:
    """Returns the fields of the facet `name` of an OpenLineage run or dataset, empty if it is missing. Raises as
    `read_event` does if it is no object."""
    facets = Fields(fields.optional("facets", OBJECT) or {}, f"{fields.at}.facets")
    return Fields(facets.optional(name, OBJECT) or {}, f"{facets.at}.{name}")


def _refuse_more(at: str, count: int, limit: int) -> None:
    """Raises `BadRequest` if `count`, the number of items of the array `at` a place in an OpenLineage event, is more
    than `limit`."""
    if count > limit:
        raise BadRequest(f"Invalid {at}: the array has {count:,} items, and at most {limit:,} are allowed")


def _text(value: JsonValue) -> str:
    """Returns a non-empty text of at most `MAX_NAME` characters. Raises `ShapeError` for another value."""
    if len(NAME(value)) > MAX_NAME:
        raise ShapeError(f"the string has {len(NAME(value)):,} characters, and at most {MAX_NAME:,} are allowed")
    return NAME(value)


def _uuid(value: JsonValue) -> str:
    """Returns a UUID, given as text, in lower case. Raises `ShapeError` for another value."""
    if UUID.fullmatch(STRING(value)) is None:
        raise ShapeError(f"{quoted(STRING(value))} is not a uuid")
    return STRING(value).lower()


def _time(value: JsonValue) -> int:
    """Reads a date and time with an offset (RFC 3339) into milliseconds since 1970. Raises `ShapeError`, also for a
    leap second, the year 0, and more than 12 digits of a second."""
    time = STRING(value)
    try:
        if _TIME.fullmatch(time) is None:
            raise ValueError(time)
        return (datetime.fromisoformat(time.upper()) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise ShapeError(
            f"{quoted(time)} is not a date and time with an offset (RFC 3339), or has a leap second, the year 0 or "
            "more than 12 digits of a second"
        ) from None
