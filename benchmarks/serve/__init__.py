"""The server under load: speed (`make load`), hours of churning features (`make soak`), hostile requests (`make http-fuzz`)."""
