"""Maintaining a stored join view while its distributed sources change (dissertation, chapters 9 to 11)."""
