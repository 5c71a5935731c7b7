"""Readers: convert files, frames and records of every format to blocks with the same notion of absence."""
