"""The HTTP API of the catalog, as an ASGI app: routes, their handlers, and the layers around them."""
