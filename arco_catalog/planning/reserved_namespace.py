"""The namespace of the pipeline's own tables, to which nobody else writes: the collector trusts what these say
(docs/decisions/0057-the-pipeline-alone-writes-system.md)."""

from arco_catalog.planning.privileges import Privilege
from arco_catalog.state.index import Namespace
from arco_catalog.state.watermarks import NAMESPACE

_CONTENT = ("NAMESPACE_", "TABLE_", "VIEW_")
_HARMLESS = ("_LIST", "_READ_PROPERTIES", "_READ_DATA", "_ATTACH_POLICY", "_DETACH_POLICY")
"""What these allow changes no namespace, table or view."""


def is_reserved(privilege: Privilege, namespace: Namespace) -> bool:
    """Whether to use the privilege in this namespace is to write to what only the pipeline writes to: its namespace and
    all inside. To read there, and to attach policies, is nothing special."""
    if namespace[:1] != (NAMESPACE,) or privilege.endswith(_HARMLESS):
        return False
    return privilege.startswith(_CONTENT)
