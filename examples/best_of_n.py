"""Best of n: a model writes several programs, each runs on a branch of one session, and the best branch goes on.

    python best_of_n.py

A script plays the model; put any object with `complete(messages, tools)` in its place.
"""

import asyncio
import math

from cellblock import AsyncSession, ExecutionLimits, ScriptedModel

POINTS = [(x, x * x + 1) for x in range(8)]
HELD_OUT = [(x, x * x + 1) for x in range(8, 12)]  # no program sees these before it has been run
TASK = "`points` is a list of (x, y). Write Python that defines predict(x). No prose, no fences."

model = ScriptedModel(
    [
        "slope = (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])\n"
        "predict = lambda x: points[0][1] + slope * x",
        "import os; os._exit(1)",
        "a = (points[2][1] - 2 * points[1][1] + points[0][1]) / 2\n"
        "b = points[1][1] - points[0][1] - a\n"
        "predict = lambda x: a * x * x + b * x + points[0][1]",
        "while True: pass",
    ]
)


async def attempt(branch: AsyncSession, program: str) -> float:
    """The program's error on the points that were held out; infinite where it gives no number."""
    if not (await branch.run(program)).ok:
        return math.inf
    await branch.set("held_out", HELD_OUT)
    value = (await branch.run("float(sum((predict(x) - y) ** 2 for x, y in held_out))")).value
    return value if isinstance(value, float) and math.isfinite(value) else math.inf


async def main(n: int = 4) -> None:
    async with AsyncSession(limits=ExecutionLimits(timeout_seconds=1)) as session:
        await session.set("points", POINTS)
        programs = [model.complete([{"role": "user", "content": TASK}], []).text for _ in range(n)]
        branches = [await session.branch() for _ in programs]
        errors = await asyncio.gather(*map(attempt, branches, programs))
        best = branches[errors.index(min(errors))]
        for branch in branches:
            if branch is not best:
                await branch.close()
        print("errors:", errors)
        print("predict(100):", (await best.run("predict(100)")).value)
        print("the session has no predict:", "predict" not in await session.names())
        await best.close()


if __name__ == "__main__":
    asyncio.run(main())
#> errors: [3224.0, inf, 0.0, inf]
#> predict(100): 10001.0
#> the session has no predict: True
