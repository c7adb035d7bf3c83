"""Makes the error for a client when the object store definitely refused a call, so that the call was not applied."""

from arco_catalog.iceberg.errors import BadRequest, Forbidden, Refusal
from storage_backends import InvalidKey, StoreDenied


def refused_by_store(error: StoreDenied | InvalidKey) -> Refusal:
    """Returns the error for a call that was not applied and never will be: `BadRequest` for a name that the store does
    not support, `Forbidden` if it denies access."""
    if isinstance(error, InvalidKey):
        return BadRequest(f"The object store does not support the name of an object that this request needs: {error}")
    return Forbidden(
        f"The object store does not let the catalog carry out this request: {error}. Check the rights of the server's "
        "credentials"
    )
