"""The records of catalogs and realms in the store: the keys, the JSON and the allowed changes, the functions that read
and write them, and what these share, such as memory accounts, clocks and worker threads."""
