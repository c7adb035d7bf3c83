"""HTTP as stores are spoken to: one request, one answer, and nothing is ever sent twice. Shared by the stores of all
clouds; what differs between them is a dialect of each."""
