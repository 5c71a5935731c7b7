"""The compiled engine: name tables, blocks, the scaler, declared state and the loops that join them."""
