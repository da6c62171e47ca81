"""Cost functions learned from sample queries: least squares with stepwise selection of terms (11.3.1).

A maintenance query of C rows with A attributes costs B0 + B1*C*A + B2*C + B3*A + B4*sqrt(C) + B5*sqrt(A) +
B6*sqrt(C*A) seconds; only the terms that pay for themselves are kept (Bayesian information criterion). Errors
are weighted by the observed time, so that small queries are estimated as well as large ones. Terms with
negative coefficients are rejected: they fit the samples but make no sense for larger queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TERMS = ("1", "C*A", "C", "A", "sqrt(C)", "sqrt(A)", "sqrt(C*A)")
_SMALLEST_SECONDS = 1e-5
_NOISE = 1e-6
"""Relative error below which further terms only fit rounding."""


@dataclass(frozen=True, slots=True)
class CostSample:
    """One observed query."""

    rows: float
    attributes: float
    seconds: float


@dataclass(frozen=True, slots=True)
class CostFunction:
    """One coefficient per term; zero for a term that was not selected."""

    coefficients: tuple[float, ...]

    def __call__(self, rows: float, attributes: float) -> float:
        values = _terms(np.array([rows]), np.array([attributes]))[0]
        return float(max(0.0, values @ np.array(self.coefficients)))

    def __str__(self) -> str:
        parts = [f"{c:.3g}*{t}" for c, t in zip(self.coefficients, TERMS, strict=True) if c]
        return " + ".join(parts).replace("*1", "", 1) if parts else "0"


def fit(samples: Sequence[CostSample]) -> CostFunction:
    """The cost function that explains `samples` best with few terms."""
    rows = np.array([sample.rows for sample in samples], dtype=np.float64)
    attributes = np.array([sample.attributes for sample in samples], dtype=np.float64)
    seconds = np.maximum(np.array([sample.seconds for sample in samples]), _SMALLEST_SECONDS)
    design = _terms(rows, attributes) / seconds[:, None]
    chosen, best, score = [0], *_solve(design, [0])
    while True:
        trials = []
        for term in range(1, len(TERMS)):
            if term not in chosen and len(chosen) + 1 < len(samples):
                coefficients, quality = _solve(design, [*chosen, term])
                if (coefficients[1:] >= 0).all():
                    trials.append((quality, term, coefficients))
        if not trials:
            break
        quality, term, coefficients = min(trials, key=lambda trial: trial[:2])
        if quality >= score:
            break
        chosen, best, score = [*chosen, term], coefficients, quality
    full = np.zeros(len(TERMS))
    full[chosen] = best
    return CostFunction(tuple(float(value) for value in full))


def _solve(design: NDArray[np.float64], terms: list[int]) -> tuple[NDArray[np.float64], float]:
    """Coefficients and criterion of a choice of terms; every observation is scaled to 1."""
    target = np.ones(len(design))
    coefficients = np.linalg.lstsq(design[:, terms], target, rcond=None)[0].astype(np.float64)
    error = float(((design[:, terms] @ coefficients - target) ** 2).mean())
    count = len(target)
    return coefficients, count * float(np.log(error + _NOISE**2)) + len(terms) * float(np.log(count))


def _terms(rows: NDArray[np.float64], attributes: NDArray[np.float64]) -> NDArray[np.float64]:
    ones = np.ones_like(rows, dtype=np.float64)
    product = rows * attributes
    return np.stack(
        [ones, product, rows, attributes, np.sqrt(rows), np.sqrt(attributes), np.sqrt(product)], axis=1
    )
