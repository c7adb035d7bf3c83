"""The job `maintain`: executes the maintenance policies of tables with Iceberg's procedures on Spark
(docs/maintenance.md)."""
