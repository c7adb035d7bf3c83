"""The job `maintain`: carries out the policies that apply to tables, by Iceberg's own procedures on Spark
(docs/maintenance.md)."""
