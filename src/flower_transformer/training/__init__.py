"""Training: losses, schedules, optimisers, data, tokenizers, metrics and a loop, one a file.

Nothing here knows a model: the loop is given a function that returns the loss of a batch.
"""
