"""The model in its short form: the same histories for everybody, as a net under whatever is changed.

New histories are looked for by `make races`, which starts from other seeds at each run. What it finds is told by hand
in `test_model_found`.
"""

from hypothesis import HealthCheck, Phase, settings
from support.model_machine import Model

TestModel = Model.TestCase
TestModel.settings = settings(
    max_examples=300,
    stateful_step_count=45,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
