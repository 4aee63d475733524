"""What holds for every test: Hypothesis is not to judge how quick this machine is (every test has a time limit)."""

from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
