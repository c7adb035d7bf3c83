"""HTTP for stores, shared by those of all clouds: a client that retries where that is safe, and below it connections,
which send no request twice. Each cloud has a dialect for what differs."""
