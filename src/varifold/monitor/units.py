"""Recognise a change of unit: the quantiles after a change are a linear function of those before."""

from __future__ import annotations

import math

import numpy as np

from varifold.monitor.drift import Floats

__all__ = ["linear_map", "unit_change"]

_UNITS = {
    "degrees Celsius to Fahrenheit": (1.8, 32.0),
    "degrees Fahrenheit to Celsius": (1 / 1.8, -32.0 / 1.8),
    "degrees Celsius to kelvin": (1.0, 273.15),
    "kelvin to degrees Celsius": (1.0, -273.15),
    "pounds to kilograms": (0.45359, 0.0),
    "kilograms to pounds": (2.20462, 0.0),
    "inches to centimetres": (2.54, 0.0),
    "centimetres to inches": (0.393701, 0.0),
    "feet to metres": (0.3048, 0.0),
    "metres to feet": (3.28084, 0.0),
    "miles to kilometres": (1.609344, 0.0),
    "kilometres to miles": (0.621371, 0.0),
    "m/s to km/h": (3.6, 0.0),
    "km/h to m/s": (1 / 3.6, 0.0),
    "psi to kPa": (6.89476, 0.0),
    "kPa to psi": (0.145038, 0.0),
    "hPa to inHg": (0.02953, 0.0),
    "inHg to hPa": (33.8639, 0.0),
    **{f"times {10**k:,}": (10.0**k, 0.0) for k in (1, 2, 3, 6, 9)},
    **{f"divided by {10**k:,}": (10.0**-k, 0.0) for k in (1, 2, 3, 6, 9)},
}


def linear_map(before: Floats, after: Floats) -> tuple[float, float, float] | None:
    """Fit after = a * before + b to quantiles; return a, b and their correlation, None for constants."""
    if before.std() == 0.0 or after.std() == 0.0:
        return None
    a = float(np.cov(before, after)[0, 1] / before.var(ddof=1))
    b = float(after.mean() - a * before.mean())
    return a, b, float(np.corrcoef(before, after)[0, 1])


def unit_change(before: Floats, after: Floats, values: int) -> str | None:
    """Describe a change of unit between the quantiles before and after a change; None if it looks like another change.

    A known conversion has to map the quantiles well, given the number of values behind them; an unknown factor is
    reported only if it is far from 1 and the shape of the distribution is the same. Where half of the values are equal,
    such as days without rain, too few quantiles are left to tell a unit from another change.
    """
    fit = linear_map(before, after)
    if fit is None or fit[2] < 0.95 or 2 * min(len(np.unique(before)), len(np.unique(after))) <= len(before):
        return None
    spread = float(after.std())
    errors = {name: float(np.sqrt(np.mean((a * before + b - after) ** 2))) / spread for name, (a, b) in _UNITS.items()}
    best = min(errors, key=errors.__getitem__)
    if errors[best] < min(0.3, 0.1 + 2.0 / math.sqrt(values)):
        return best
    a, b, correlation = fit
    if correlation > 0.985 and abs(math.log(a)) > math.log(3.0):
        return f"about {a:.3g} times as large" + ("" if abs(b) < 0.2 * spread else f", {b:+.3g}")
    return None
