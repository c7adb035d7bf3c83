"""A checker of histories for any Iceberg REST catalog: `arco prove URL`. Clients send drawn programs through a network
that loses, delays and repeats requests, and the answers are compared with what an atomic catalog could have
answered. It imports nothing of the catalog (docs/prove.md)."""
