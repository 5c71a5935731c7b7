"""The server: its speed (`make load`), churning features (`make soak`), hostile requests (`make http-fuzz`)."""
