"""Small numerics in C that any compiled module may call without the GIL: rows, sums, ranks, hedging, ADWIN.

It imports nothing of the package but `errors`.
"""
