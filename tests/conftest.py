"""What all tests share: fixed threads, and property tests that draw the same examples in CI."""

from __future__ import annotations

import os

# Before anything imports torch: one thread a test process (make test-portable takes two as well),
# so that sums are taken in one order and xdist's workers do not fight over the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", os.environ["OMP_NUM_THREADS"])

from hypothesis import HealthCheck, settings

# No deadline: the first call of a torch operation may take a hundred times as long as the second.
settings.register_profile("local", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "local")
