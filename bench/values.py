"""F10: 100 MB of an array or a data frame into a session and out of it, beside one copy into fresh memory.

Once with `session[name]`, which is all of the way: pickled or taken apart, copied, built again.
"""

from __future__ import annotations

from functools import partial

import cellblock
from bench.sampling import Measure, Plan, Ratio, Samples, interleaved, require, timed

_LIMITS = cellblock.ExecutionLimits(max_memory_mb=1024, max_value_mb=128, max_checkpoints=0)
_BYTES = 100 * 2**20


def _across(kind: str, way: str, plan: Plan) -> Samples:
    require("numpy", "pandas")
    import numpy
    import pandas

    array = numpy.arange(_BYTES // 8, dtype=float)
    value = array if kind == "array" else pandas.DataFrame(dict(enumerate(array.reshape(8, -1))))
    with cellblock.Session(limits=_LIMITS) as session:
        session.run("import numpy, pandas")
        session["x"] = value

        def put() -> None:
            session["x"] = value

        return interleaved(
            plan.rounds,
            partial(timed, put if way == "in" else lambda: session["x"]),
            partial(timed, array.copy),
        )


MEASURES = tuple(
    Measure(
        id=f"F10/{kind}-{way}", what=f"100 MB of {what} {way}", reference="one copy into fresh memory",
        goal=Ratio(3), rounds=20, take=partial(_across, kind, way),
    )
    for kind, what in (("array", "an array"), ("frame", "a data frame"))
    for way in ("in", "out")
)  # fmt: skip
