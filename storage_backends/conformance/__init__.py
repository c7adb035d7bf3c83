"""What a store has to do for a catalog to work on it, as checks that run on a real bucket: `arco doctor URL`."""
