"""Handles requests to a catalog: the session of a request, the access control, and the protocol by which a mutation
takes effect exactly once, with markers of idempotency keys, evidence of commits, takeovers, the commit loop, group
commit and transactions."""
