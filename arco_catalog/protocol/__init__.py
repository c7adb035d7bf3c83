"""The protocol by which a mutation takes effect exactly once: markers of idempotency keys, evidence of commits,
takeovers, the commit loop, and group commit."""
