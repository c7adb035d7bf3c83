"""The functions that `make bench-cold` compares with the catalog: each module alone is copied to a folder, as a
function's only code."""
