"""The `arco` command."""
