"""Names to dense ids: the table behind a learner's `Space` and a stream's `Vocabulary`."""
