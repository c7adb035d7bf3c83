"""What a request would change: pure functions of what was read, the request, and the attempt."""
