"""What `make bench-cold` starts beside the catalog: each module alone is copied to a folder, a function's only code."""
