"""Measure the server: speed (`make load`), churn (`make soak`, `make words`), devices (`make fleet`), bad requests."""
