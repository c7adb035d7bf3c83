"""What is read from environment variables and options, once, typed."""
