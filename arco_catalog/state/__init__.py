"""The durable records of catalogs: each with the path, JSON form and legal transitions, and the functions that read and
write it."""
