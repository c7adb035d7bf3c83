"""A demonstration of the catalog on real input: TPC-H, with real Spark and real PyIceberg (`make demo`)."""
