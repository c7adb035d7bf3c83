"""The context that the handler of a request gets: the decoded request, and its sessions."""

from dataclasses import field

from arco_catalog.http.decoded_request import DecodedRequest
from arco_catalog.http.service import Endpoint, Service
from arco_catalog.http.sessions import Sessions
from storage_backends.lazy_dataclass import dataclass


@dataclass(kw_only=True, eq=False)
class RequestContext(DecodedRequest):
    """The argument of a handler: one decoded request at an `endpoint` of the `service`, with the `sessions` in which
    the handler reads and changes catalogs."""

    service: Service
    endpoint: Endpoint
    sessions: Sessions = field(init=False)
    """Set by the dispatcher: they refer to the request."""
