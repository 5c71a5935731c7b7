"""Small numerics that any compiled module may use without the interpreter lock."""
