"""Combine several learners: one learner per key, votes, merged learners, one stream learned by several workers.

`PerKey`, `PerKeyRegressor`, `Vote`, `merge` and `learn_parallel` are public names of `varifold`. Modules here import
learners, streams and what is below them; evaluation, the command line, the server and Spark build on them.
"""
