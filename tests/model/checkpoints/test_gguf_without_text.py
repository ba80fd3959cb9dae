from model.inputs import Inputs
from model.loading import load_model
from tests import tiny, tiny_gguf


def test_a_gguf_whose_tokenizer_is_not_implemented_still_runs_ids(tmp_path):
    config = tiny.LLAMA | {"attention_bias": False, "mlp_bias": False, "hidden_act": "silu"}
    loaded = load_model(tiny_gguf.write(tmp_path / "tiny.gguf", config, tiny.llama_tensors(config)))
    assert loaded.encoder is None
    (notice,) = loaded.notices
    assert "not implemented: run ids instead" in notice
    assert loaded.transformer.trace(Inputs.of([1, 2, 3])).finite
