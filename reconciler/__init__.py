"""What runs on Spark, beside the catalog and never needed for a commit to be correct (design.md, section 3)."""
