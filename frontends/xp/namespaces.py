"""The namespace `xp.stats`: counters of streams when it is called, and probability densities."""

from __future__ import annotations

from passkit.frontends.xp import control, densities


class StatsNamespace:
    """`passkit.xp.stats`: ``stats()`` returns counters, and ``stats.normal_lpdf`` is a density."""

    __all__ = densities.__all__
    __name__ = densities.__name__

    LogDensity = densities.LogDensity
    bernoulli_logit_glm_lpmf = staticmethod(densities.bernoulli_logit_glm_lpmf)
    bernoulli_logit_lpmf = staticmethod(densities.bernoulli_logit_lpmf)
    neg_binomial_2_log_glm_lpmf = staticmethod(densities.neg_binomial_2_log_glm_lpmf)
    neg_binomial_2_log_lpmf = staticmethod(densities.neg_binomial_2_log_lpmf)
    normal_id_glm_lpdf = staticmethod(densities.normal_id_glm_lpdf)
    normal_lpdf = staticmethod(densities.normal_lpdf)
    poisson_log_glm_lpmf = staticmethod(densities.poisson_log_glm_lpmf)
    poisson_log_lpmf = staticmethod(densities.poisson_log_lpmf)
    with_derivatives = staticmethod(densities.with_derivatives)

    def __init__(self) -> None:
        self.__doc__ = control.stats.__doc__

    def __call__(self) -> dict[str, int]:
        """Return the counters of all streams, by name; see `control.stats`."""
        return control.stats()


stats = StatsNamespace()
