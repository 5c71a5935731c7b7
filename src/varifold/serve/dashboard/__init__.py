"""The dashboard: one page, its style and its scripts, served as they are."""
