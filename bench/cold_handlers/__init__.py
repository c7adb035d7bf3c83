"""What `bench.cold` starts beside the catalog: each module is copied alone into a folder, as a function's only code."""
