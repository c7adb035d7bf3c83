"""The namespace of the pipeline's own tables, to which only principals that run the pipeline may write, because
collections rely on the contents (docs/decisions/0057-the-pipeline-alone-writes-system.md)."""

from arco_catalog.planning.privileges import Privilege
from arco_catalog.state.index import Namespace
from arco_catalog.state.watermarks import NAMESPACE

_CONTENT = ("NAMESPACE_", "TABLE_", "VIEW_")
_HARMLESS = ("_LIST", "_READ_PROPERTIES", "_READ_DATA", "_ATTACH_POLICY", "_DETACH_POLICY")
"""The endings of privileges that change no namespace, table or view."""


def is_reserved(privilege: Privilege, namespace: Namespace) -> bool:
    """Whether the use of a privilege in this namespace would write to a namespace, table or view of the pipeline: the
    namespace is the pipeline's or inside it. Reading there, and attaching policies, is not reserved."""
    if namespace[:1] != (NAMESPACE,) or privilege.endswith(_HARMLESS):
        return False
    return privilege.startswith(_CONTENT)
