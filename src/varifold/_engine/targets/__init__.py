"""What a learner predicts: labels (`ClassTarget`), numbers (`RealTarget`) or nothing (`NoTarget`)."""
