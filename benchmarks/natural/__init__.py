"""Recipes of the natural streams: each makes the prepared file from its publisher's originals."""
