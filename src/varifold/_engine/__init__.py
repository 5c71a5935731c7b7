"""Compiled engine: names, blocks, instances, declared state, models, targets and the loop that joins them.

It knows no method. It imports `_numeric` and `errors`; everything with a model in it builds on the engine.
"""
