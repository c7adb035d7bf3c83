"""Runs Apache Iceberg's REST Compatibility Kit against `arco serve`: `python -m tools.rck`."""
