"""How far the lineage and the quality of a commit can be trusted, by the source in its receipt
(docs/design/pipeline.md#sources). Pure functions."""

from arco_catalog.iceberg.json import JsonObject
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Confidence:
    """The confidence in the lineage of a commit, None if nothing is declared, and the status of its quality checks."""

    lineage: str | None
    quality: str


def is_servo(source: JsonObject) -> bool:
    """Whether a commit of this source was made by Servo: the source is not only claimed by an anonymous client."""
    return source.get("kind") == "Servo" and source.get("claimed") is not True


def confidence_in(source: JsonObject) -> Confidence:
    """Returns the confidence in a commit of this source. One by Servo is `Verified` and `Checked`, unless an anonymous
    client claimed the source. All others are `NotChecked`; the lineage of claimed Servo and of clients of Iceberg REST
    is `DeclaredUnverified`."""
    if is_servo(source):
        return Confidence("Verified", "Checked")
    return Confidence("DeclaredUnverified" if source.get("kind") in ("Servo", "IcebergRest") else None, "NotChecked")
