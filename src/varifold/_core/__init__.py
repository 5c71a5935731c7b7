"""The compiled engine: name tables, blocks, the scaler, the rules and the loop that joins them."""
