"""The Transformer, one concept a file: readable, typed, tested against torch.nn."""
