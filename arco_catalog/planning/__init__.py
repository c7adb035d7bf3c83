"""Planning: pure functions that compute from what was read, the request and the attempt what the request would
change."""
