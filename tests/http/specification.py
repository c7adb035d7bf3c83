"""The parts of the Iceberg REST specification of each endpoint that tests use.

`endpoints.json` is an extract of the specification that this code was written against, kept so that tests need nothing
else. `python -m tests.http.specification SPEC.yaml` writes it anew.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from tools.openapi.specifications import ICEBERG_SOURCE

EXTRACT = Path(__file__).with_name("endpoints.json")


@dataclass(frozen=True)
class Endpoint:
    """`takes_key`: whether it declares the `Idempotency-Key` header. `may_be_unknown`: whether it describes a 502, as
    only routes do on which any 5xx leaves the outcome open. `success`: its 2xx and 304 statuses."""

    takes_key: bool
    may_be_unknown: bool
    success: list[int]


def extract(specification: Path) -> dict[str, Endpoint]:
    """Reads the OpenAPI document."""
    document = yaml.load(specification.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {
        f"{method.upper()} {path}": _endpoint(operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in ("get", "head", "post", "put", "delete")
    }


def _endpoint(operation: Mapping[str, Any]) -> Endpoint:
    parameters = [parameter.get("$ref", "") for parameter in operation.get("parameters", [])]
    statuses = [status for status in operation["responses"] if isinstance(status, int)]
    return Endpoint(
        takes_key=any(reference.endswith("/idempotency-key") for reference in parameters),
        may_be_unknown=502 in statuses,
        success=[status for status in statuses if status < 400],
    )


def known() -> dict[str, Endpoint]:
    """The extract as it is kept."""
    return {name: Endpoint(**fields) for name, fields in json.loads(EXTRACT.read_text()).items()}


def polaris_endpoints() -> dict[str, dict[str, Any]]:
    """What Apache Polaris's own specifications say of its own operations: how an operation is called, and its
    successes."""
    found: dict[str, dict[str, Any]] = json.loads(EXTRACT.with_name("polaris_endpoints.json").read_text())
    return found


def sources() -> dict[str, dict[str, Endpoint]]:
    """The extract, and the specification itself where it is at hand."""
    found = {"extract": known()}
    if ICEBERG_SOURCE.exists():
        found["specification"] = extract(ICEBERG_SOURCE)
    return found


if __name__ == "__main__":
    rows = [
        f"  {json.dumps(name)}: {json.dumps(asdict(endpoint))}" for name, endpoint in extract(Path(sys.argv[1])).items()
    ]
    EXTRACT.write_text("{\n" + ",\n".join(rows) + "\n}\n")
