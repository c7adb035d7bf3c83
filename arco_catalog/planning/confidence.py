"""How far the lineage and the quality of a commit can be trusted, by the source in its receipt
(docs/design/pipeline.md#sources). Pure functions."""

from arco_catalog.iceberg.json import JsonObject
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Confidence:
    """The confidence in the lineage of a commit, None if nothing is declared, and the status of its quality checks."""

    lineage: str | None
    quality: str


def confidence_in(source: JsonObject) -> Confidence:
    """Returns the confidence in a commit of this source. One by Servo is `Verified` and `Checked`, unless an anonymous
    client claimed the source. All others are `NotChecked`; the lineage of claimed Servo and of clients of Iceberg REST
    is `DeclaredUnverified`."""
    kind, claimed = source.get("kind"), source.get("claimed") is True
    if kind == "Servo" and not claimed:
        return Confidence("Verified", "Checked")
    return Confidence("DeclaredUnverified" if kind in ("Servo", "IcebergRest") else None, "NotChecked")
