"""How a mutation becomes durable exactly once: markers, evidence, takeovers, the commit loop, group commit."""
