"""The main job on real input: TPC-H through the catalog, with real Spark and real PyIceberg (`make demo`)."""
