"""Small numeric routines in C, callable without the GIL from any compiled module: rows, sums, ranks, hedging, ADWIN.

Of the package, it imports only `errors`.
"""
