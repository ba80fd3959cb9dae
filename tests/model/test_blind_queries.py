import pytest

from model.errors import PlanError
from model.plan import Plan
from tests import tiny


@pytest.mark.parametrize(
    ("sites", "first"), [(None, "encoder.self.0"), ("encoder.self.[12]", "encoder.self.1")]
)
def test_a_query_without_keys_is_named_with_the_first_site_where_that_is_so(tmp_path, sites, first):
    loaded = tiny.bert(tmp_path / "bert")
    allow = [[1, 1], [0, 0]]
    plan = Plan.parse([{"kind": "set_mask", "rule": {"name": "custom", "allow": allow}, "sites": sites}])
    with pytest.raises(PlanError, match=f"query 1 sees no key in {first}: leave it at least one") as caught:
        loaded.transformer.program(plan, 2)
    assert caught.value.extra == {"site": first, "query": 1}
