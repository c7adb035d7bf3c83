"""What tools and tests share: a catalog to call, clients of it, bodies of requests, and the servers that they start."""
