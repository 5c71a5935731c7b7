"""Rows as arrays: `Block`, and how one is built."""
