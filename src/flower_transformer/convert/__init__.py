"""Weights from and to torch.nn and Hugging Face, as state dicts; neither library is asked."""
