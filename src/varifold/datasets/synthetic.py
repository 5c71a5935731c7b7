"""Generated set of OVFM, section V-A: mixed types from a Gaussian copula."""

from __future__ import annotations

import numpy as np

from varifold._engine.data.block import Block
from varifold._engine.names.vocabulary import Labels, Vocabulary
from varifold.base.blocks import to_block

__all__ = ["synthetic"]


def synthetic(rows: int = 2000, seed: int = 0) -> Block:
    """Generate `rows` x 18: 6 Boolean (2 bins), 6 ordinal (5 bins), 6 continuous; the label is the sign of w x.

    The correlation is W W^T scaled to a unit diagonal; bins have equal probability. The paper does not state W, w or
    the bins; here all are drawn from the seed.
    """
    draw = np.random.default_rng(seed)
    loading = draw.standard_normal((18, 18))
    covariance = loading @ loading.T
    scale = np.sqrt(np.diag(covariance))
    latent = draw.multivariate_normal(np.zeros(18), covariance / np.outer(scale, scale), size=rows)
    x = latent.copy()
    for j in range(12):
        parts = 2 if j < 6 else 5
        edges = np.quantile(latent[:, j], np.arange(1, parts) / parts)
        x[:, j] = np.searchsorted(edges, latent[:, j])
    weight = draw.standard_normal(18)
    y = (x - x.mean(axis=0)) @ weight > 0
    names = [f"{kind}{j + 1}" for kind in ("boolean", "ordinal", "continuous") for j in range(6)]
    return to_block(x, y.astype(int), names=names, vocabulary=Vocabulary(), labels=Labels([0, 1]))
