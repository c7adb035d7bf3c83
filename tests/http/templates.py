"""Paths of routes, filled in."""

import re

VALUES = {
    **{"prefix": "wh", "namespace": "db", "table": "t", "view": "v", "function": "f", "plan-id": "p"},
    **{"generic-table": "g", "policy-name": "p", "semantic-model-name": "m", "version": "0", "task": "none"},
}
"""What tests call things; `conftest.py` makes the namespace and the table."""


def path_of(template: str, **values: str) -> str:
    """The path of a template, with other values, encoded already, if need be."""
    return re.sub(r"{(.*?)}", lambda parameter: {**VALUES, **values}[parameter[1]], template)
