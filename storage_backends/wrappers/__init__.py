"""The store as a request sees it, which wraps another one, and the timer and the measurement of calls that it uses."""
