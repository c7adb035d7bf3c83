"""A serverless Apache Iceberg REST catalog whose only state is an object store."""
