"""Learners of other libraries as columns of a table, each in the way that its documentation recommends.

A table names them by path, such as ``varifold.bench.peers.lightgbm:RefitClassifier:data=nhanes``. A library that is not
installed leaves its columns out, and the run reports it; ``pip install --group peers`` in a checkout installs all of
them (CapyMOA also needs Java 17). Those that need the columns, categories and labels of a stream in advance get them by
``data``, the name of the data set.
"""
