"""Learners on Spark: one per key on a stream, one per group of a batch, or one stream split over many workers.

Needs the extra ``spark`` (pyspark 4, pandas, pyarrow) and Java 17; importing it needs neither. See docs/spark.md.
"""

from varifold.spark.batch import learn_groups, learn_parallel
from varifold.spark.export import models_of
from varifold.spark.stream import learn_stream

__all__ = ["learn_groups", "learn_parallel", "learn_stream", "models_of"]
