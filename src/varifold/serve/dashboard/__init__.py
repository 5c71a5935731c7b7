"""Dashboard: one page, its style sheet and its scripts, served unchanged."""
