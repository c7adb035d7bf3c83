"""The values of the Helm chart: each has an effect, and what the schema does not know is refused."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.packaging.chart import (
    CHART,
    EVERYTHING,
    LEAST,
    SCHEMA,
    Key,
    properties,
    refusal,
    render_text,
    scalars,
    with_value,
)

pytestmark = pytest.mark.needs(".tools/helm")


def test_the_test_has_a_value_for_everything_that_the_schema_knows() -> None:
    for key, _ in properties(SCHEMA):
        found: Any = EVERYTHING
        for name in key:
            if name != "global":  # of charts that have this one in them
                assert name in found, key
                found = found[name]


def test_the_schema_knows_every_default() -> None:
    known = {key for key, _ in properties(SCHEMA)}
    for key, _ in scalars(yaml.safe_load((CHART / "values.yaml").read_text())):
        assert any(key[:length] in known for length in range(1, len(key) + 1)), key


def another(key: Key, value: Any) -> Any:
    """Another value of the same form."""
    schema = dict(properties(SCHEMA)).get(key, {})
    if "enum" in schema:
        return next(each for each in schema["enum"] if each != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value.replace("5", "6") if value in ("25%", "15s") else f"{value}x"


@pytest.mark.parametrize(
    ("key", "value"), [pytest.param(*each, id=".".join(map(str, each[0]))) for each in scalars(EVERYTHING)]
)
def test_every_value_has_an_effect(key: Key, value: Any) -> None:
    values = with_value(EVERYTHING, ("autoscaling", "enabled"), False) if key == ("replicas",) else EVERYTHING
    if key == ("metrics", "enabled"):
        values = with_value(EVERYTHING, ("metrics", "serviceMonitor", "enabled"), False)
    assert render_text(with_value(values, key, another(key, value))) != render_text(values)


@pytest.mark.parametrize(
    "key",
    [key for key, schema in properties(SCHEMA) if schema.get("additionalProperties") is False],
    ids=lambda key: ".".join(key) or "values",
)
def test_an_unknown_key_is_refused(key: Key) -> None:
    assert "unheard" in refusal(with_value(EVERYTHING, (*key, "unheard"), 1))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "set store, such as s3://bucket/prefix"),
        ({"delegation": {"enabled": True}}, "set delegation.tlsSecretName"),
        ({"ingress": {"enabled": True}}, "ingress needs hosts"),
        ({"httpRoute": {"enabled": True}}, "httpRoute needs parentRefs"),
        ({"keyFiles": {"tokenKey": "key"}}, "keyFiles needs secretName"),
        ({"metrics": {"serviceMonitor": {"enabled": True}}}, "metrics.serviceMonitor needs metrics.enabled"),
        ({"networkPolicy": {"clients": {"arco-catalog-client": None}}}, "clients"),
        ({"networkPolicy": {"peers": [{}]}}, "peers"),
        ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({"environment": {"NO NAME": "1"}}, "NO NAME"),
    ],
)
def test_values_that_do_not_fit_together_are_refused(values: Mapping[str, Any], message: str) -> None:
    assert message in refusal({**LEAST, **values} if values else {})
