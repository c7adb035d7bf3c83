"""Formats grants, and what they are on, as text."""

from arco_catalog.cli.columns import format_text
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import format_identifier
from arco_catalog.state.fields import optional_text, text, texts


def format_grant(grant: JsonObject) -> str:
    """Formats a grant of the management API: the privilege, and on what it is granted."""
    return f"{text(grant, 'privilege')} on {format_securable(grant)}"


def format_securable(grant: JsonObject) -> str:
    """Formats the securable of a grant of the management API: its type and name, or the catalog or realm."""
    kind = text(grant, "type")
    levels = texts(grant, "namespace")
    name = optional_text(grant, f"{kind}Name")
    if not levels:
        return f"the {kind}"
    return format_text(f"{kind} {format_identifier(levels if name is None else (*levels, name))}")
