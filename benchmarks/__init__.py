"""Measures Attention Atlas beside `transformers` and BertViz in one run: `make bench`."""
