"""Readers: files, frames and records of every format become blocks that agree on absence."""
