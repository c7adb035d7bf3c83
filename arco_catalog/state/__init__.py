"""Each durable record: its path, its JSON form and its legal transitions; and the doors to read and move them."""
