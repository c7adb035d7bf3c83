"""The names of stored OpenLineage events. A name has tags, short hashes of the event's run, sender and datasets, so a
listing shows which events may be about a table (docs/design/lineage.md#rule-13). Pure functions."""

import hashlib
from base64 import b32encode
from collections.abc import Iterable
from typing import Final

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.planning.lineage_datasets import DatasetRef, locations_of, names_of
from arco_catalog.state.lineage import Dataset, LineageEvent, event_digest
from arco_catalog.state.locations import Location
from storage_backends.lazy_dataclass import dataclass

MAX_DATASET_TAGS = 40
"""Maximum number of tags of datasets in a name: a file's name has at most 255 bytes. An event with more has none."""
_TAG_LENGTH: Final = 4
_ANY: Final = "any"
"""Stands in a name for the tags of datasets, if there are too many."""


@dataclass(frozen=True, slots=True)
class EventTags:
    """The tags in the name of an event: of the sender, of the run of this sender, and of the datasets, None if the
    event may be about any. In a name without tags `sender` and `run` are empty."""

    sender: str
    run: str
    datasets: frozenset[str] | None

    def may_name(self, datasets: frozenset[str]) -> bool:
        """Whether the event may name a dataset with one of these tags."""
        return self.datasets is None or not self.datasets.isdisjoint(datasets)


NO_TAGS = EventTags("", "", None)


def event_name(body: bytes, event: LineageEvent, principal: str) -> str:
    """Returns the name of an event of a principal with the stored bytes `body`: the digest of these, a hyphen, and
    the tags of sender, run and datasets, in that order; `any` in place of more than `MAX_DATASET_TAGS` of datasets."""
    tags = _tags_of(event)
    datasets = _ANY if len(tags) > MAX_DATASET_TAGS else "".join(sorted(tags))
    return f"{event_digest(body)}-{_tag(principal)}{_run_tag(principal, event.run)}{datasets}"


def digest_in(name: str) -> str:
    """Returns the digest in an event's name."""
    return name.partition("-")[0]


def tags_in(name: str) -> EventTags:
    """Returns the tags in an event's name, `NO_TAGS` for a name without them."""
    tags = name.partition("-")[2]
    pieces = [tags[at : at + _TAG_LENGTH] for at in range(0, len(tags), _TAG_LENGTH)]
    if len(pieces) < 2:
        return NO_TAGS
    sender, run, *datasets = pieces
    return EventTags(sender, run, None if _ANY in datasets else frozenset(datasets))


def table_tags(namespace: Iterable[str], name: str, locations: Iterable[str]) -> frozenset[str]:
    """Returns the tags by which events may name a table: those of `locations`, given in their normal forms, and of the
    full name."""
    return frozenset(map(_tag, (".".join((*namespace, name)), *locations)))


def dataset_tags(dataset: DatasetRef) -> frozenset[str]:
    """Returns the tags of a dataset, which has one in common with a table that it may mean (`table_tags`): of every
    spelling of the location that it is named by; for any other dataset, of the full names that it may mean and of the
    dataset's own name."""
    locations = locations_of(dataset)
    if locations:
        return frozenset(map(_tag, map(_normal, locations)))
    spelled = (dataset.name, *(name for _, name in dataset.further))
    catalogs = {name.partition(".")[0] for name in spelled}  # that of the reader is not known here
    return frozenset(map(_tag, (str(dataset), *(".".join(name) for name in names_of(dataset, catalogs)))))


def reference_to(dataset: Dataset) -> DatasetRef:
    """Returns a dataset of an event in the form in which a dataset is compared with tables."""
    further = tuple((name.namespace, name.name) for name in dataset.also)
    return DatasetRef(dataset.name.namespace, dataset.name.name, further, dataset.snapshot_id)


def _tags_of(event: LineageEvent) -> set[str]:
    """Returns the tags of an event's datasets, at least one more than the maximum if there are too many."""
    found: set[str] = set()
    for dataset in (*event.inputs, *event.outputs):
        found |= dataset_tags(reference_to(dataset))
        if len(found) > MAX_DATASET_TAGS:
            break
    return found


def _run_tag(principal: str, run: str | None) -> str:
    """Returns the tag of a principal's run."""
    return _tag(f"{principal}\n{run}")


def _normal(location: str) -> str:
    """Returns the normal form of a location; the text itself if it is not one."""
    try:
        return Location.parse_stored(location).normal
    except BadRequest:
        return location


def _tag(text: str) -> str:
    """Returns a short hash of a text."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return b32encode(digest[:5]).decode()[:_TAG_LENGTH].lower()
