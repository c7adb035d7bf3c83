"""The Helm chart, as helm renders it."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.packaging.dockerfile import PROJECT

CHART = PROJECT / "deploy" / "helm" / "arco-catalog"
EVERYTHING: Mapping[str, Any] = yaml.safe_load((Path(__file__).parent / "helm" / "everything.yaml").read_text())
SCHEMA: Mapping[str, Any] = json.loads((CHART / "values.schema.json").read_text())
LEAST = {"store": "s3://lake/catalog"}

Document = dict[str, Any]
Key = tuple[str | int, ...]


def _template(values: Mapping[str, Any], release: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROJECT / ".tools" / "helm", "template", release, CHART, "--values", "-"],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def render_text(values: Mapping[str, Any], release: str = "lake") -> str:
    """What helm prints for a release with these values. Raises `AssertionError` with its message where it fails."""
    made = _template(values, release)
    assert made.returncode == 0, made.stderr
    return made.stdout


def render(values: Mapping[str, Any], release: str = "lake") -> Sequence[Document]:
    """The objects of a release with these values."""
    return [document for document in yaml.safe_load_all(render_text(values, release)) if document]


def refusal(values: Mapping[str, Any]) -> str:
    """The error of helm for values that the chart refuses."""
    made = _template(values, "lake")
    assert made.returncode != 0, made.stdout
    return made.stderr


def with_value(values: Any, key: Key, value: Any) -> Any:
    """The values with another one at a key."""
    if not key:
        return value
    changed: Any = list(values) if isinstance(values, list) else dict(values)
    changed[key[0]] = with_value(changed[key[0]] if len(key) > 1 else None, key[1:], value)
    return changed


def scalars(values: Any, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Every string, number and boolean in the values, by its key."""
    match values:
        case dict():
            for name, each in values.items():
                yield from scalars(each, (*key, name))
        case list():
            for index, each in enumerate(values):
                yield from scalars(each, (*key, index))
        case _:
            yield key, values


def properties(schema: Mapping[str, Any], key: Key = ()) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    """Every value that a schema knows by name, at any depth; the whole has the key ()."""
    yield key, schema
    for name, each in schema.get("properties", {}).items():
        yield from properties(each, (*key, name))


def closed(schema: Any) -> Any:
    """A schema that lets through no field that it doesn't name, as a cluster that validates strictly does."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(each) for name, each in schema.items()}
    if "properties" in schema and schema.get("type") == "object":
        inner.setdefault("additionalProperties", False)
    return inner
