"""Checkpoint readers: they return a configuration and a state dict, and know no module.

`reader` opens a folder or a file, `source` and `gguf` read formats, `mapping` names the tensors strictly, and
there is one small file for each model family.
"""
