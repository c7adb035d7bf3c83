"""The ASGI app: routes, (de)serialisation, error mapping, ETag, config."""
