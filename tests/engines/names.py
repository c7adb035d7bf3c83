"""Names that paths must escape, for every engine to try."""

NAMES = ("we ird", "a+b", "100%", "%2f", "a/b", "what?", "#1", "it's", "back\\slash", " led", "é 🧊", "שלום")
