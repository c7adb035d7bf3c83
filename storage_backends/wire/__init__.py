"""HTTP for stores: one request, one response, and nothing is ever sent twice. Shared by the stores of all clouds; each
has a dialect for what differs."""
