"""Bounds that hold the truth as often as requested: levels, and the expected size of an error."""
