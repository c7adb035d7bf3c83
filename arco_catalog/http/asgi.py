"""Types of the ASGI protocol's dictionaries. requests.py reads requests, responses.py sends responses; other modules
than these and the adapters only look up in a scope its type, the caller, the event of a gateway, and the context of an
invocation on Lambda; app.py also confirms the messages of the lifespan."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = Mapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Asgi: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
