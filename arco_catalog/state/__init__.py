"""Each durable record with its path, JSON form and legal transitions, and the functions that read and write it."""
