"""Pictures of results; nothing here computes a learner."""
