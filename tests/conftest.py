"""Hypothesis profiles: quick in CI, many more examples in `make test-deep`; caches and Ctrl-C."""

import os
import signal
from collections.abc import Iterator

# Before anybody loads NumPy: the threads of its products spin while they wait, and take the core
# from the other worker of the tests.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# An error that nobody foresaw fails its test by a traceback, here and in what tests start.
os.environ["STRETTO_TRACEBACK"] = "1"

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("quick", max_examples=60, deadline=None, derandomize=True)
settings.register_profile(
    "deep", max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("STRETTO_HYPOTHESIS", "quick"))


@pytest.fixture(scope="session", autouse=True)
def _caches_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests keep on disk is not the user's, and what the user keeps is not theirs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("STRETTO_CACHE", raising=False)
        patch.setenv("STRETTO_REFUSED", "error")  # a schedule that is refused is a bug
        yield


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_as_in_a_shell() -> Iterator[None]:
    """Ctrl-C is heard, here and by what tests start; a job in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _generators_that_a_test_registers() -> Iterator[None]:
    """They are gone after it."""
    from stretto.generate import outside  # noqa: PLC0415

    registered = outside._REGISTERED  # pyright: ignore[reportPrivateUsage]
    before = dict(registered)
    yield
    registered.clear()
    registered.update(before)
