"""Measure the server: speed (`make load`), churning features (`make soak`), hostile requests (`make http-fuzz`)."""
