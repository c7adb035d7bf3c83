"""Programs of requests, drawn from a seed and played in a simulated world, and the judgement of what they were told."""
