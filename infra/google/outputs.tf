output "url" {
  description = "What engines take as `uri`, and the audience of their ID tokens."
  value       = local.url
}

output "bucket" {
  description = "The bucket that holds everything."
  value       = local.bucket
}

output "store" {
  description = "The store as `arco` commands take it (--store)."
  value       = local.store
}

output "service" {
  description = "Name of the Cloud Run service."
  value       = google_cloud_run_v2_service.api.name
}

output "job" {
  description = "Name of the reconciler's Cloud Run job."
  value       = google_cloud_run_v2_job.job["reconcile"].name
}

output "revision" {
  description = "The revision that was made last: what to go back to."
  value       = google_cloud_run_v2_service.api.latest_ready_revision
}

output "settings" {
  description = "What to paste into spark, pyiceberg and trino."
  value       = local.to_paste
}

output "storage" {
  description = "What catalogs of a realm are made with: where their tables go (a folder in new_catalogs each), and their storageConfigInfo."
  value       = local.storage
}
