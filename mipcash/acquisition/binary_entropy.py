"""What a yes or no tells of the constrained minimum: the share of an output with binary feedback (Perrone et al. 2019, A.3).

Notation (one point; all arrays elementwise)
    c ~ N(mu, sd^2)         the latent constraint;   z = +1 where an evaluation is illegal, -1 where it is legal
    P(z | c) = sigma(z c)   sigma the logistic function;   c <= delta counts as legal, at a confidence of sigma(-delta)
    Q(z) = sigma(z mu / sqrt(1 + pi sd^2 / 8))                              (Bishop 2006, Section 4.5.2)
    Q(c | z) = N(m_z, v)    by one Newton step from mu: w = sigma(mu) sigma(-mu),  v = sd^2 / (1 + sd^2 w),
                            m_z = mu + z sigma(-z mu) v
    t_z = (delta - m_z) / sqrt(v),   F_z = Phi(t_z)                        probability of c <= delta after z
    Z = sum_z Q(z) F_z

With L and S as in :mod:`mipcash.acquisition.constrained_entropy`, the entropy difference of A.3 is that of real-valued outputs,
where this output adds log Z to L and 2 G to S:

    G = sum_z Q(z) [(F_z / Z - 1) log Q(z) + (1 - F_z) (-log(1 - F_z)) / Z]

Where Z underflows, (1 - F) (-log(1 - F)) / Z is a ratio of numbers that underflow alike: it is taken as the exponential of a sum of
logarithms, log(-log(1 - F)) being log F there. With several binary outputs the shares add up as if each were the only one.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, logsumexp

from mipcash.acquisition.constrained import hazard
from mipcash.acquisition.constrained_entropy import Share
from mipcash.program.forms import Vector

SIGNS = np.array([[1.0], [-1.0]])
"""z, the first axis of all that depends on it: shape (2, 1)."""
SMALL = -6.0
"""t below which -log(1 - F) is F, but for 1e-9 of it."""


class Answers:
    """Q(z) and F_z at B points, and their derivatives by mu and by sd.

    Attributes:
        log_q, log_f, log_g: log Q(z), log F_z and log(1 - F_z), shape (2, B) with z = +1 first.
        q_by, f_by, g_by: their derivatives, pairs (by mu, by sd) of shape (2, B).
        t: t_z, shape (2, B);   t_by: its derivatives.
    """

    def __init__(self, mu: Vector, sd: Vector, delta: float) -> None:
        k = 1.0 / np.sqrt(1.0 + math.pi * sd**2 / 8.0)
        self.log_q = log_expit(SIGNS * k * mu)
        other = SIGNS * expit(-SIGNS * k * mu)
        self.q_by = (other * k, -other * mu * math.pi * sd / 8.0 * k**3)
        w = expit(mu) * expit(-mu)
        v = sd**2 / (1.0 + sd**2 * w)
        step, root = SIGNS * expit(-SIGNS * mu), np.sqrt(v)
        v_by = (-(v**2) * w * (1.0 - 2.0 * expit(mu)), 2.0 * v**2 / sd**3)
        m_by = (1.0 - w * v + step * v_by[0], step * v_by[1])
        self.t = (delta - mu - step * v) / root
        self.t_by = tuple(-m / root - self.t * d / (2.0 * v) for m, d in zip(m_by, v_by, strict=True))
        self.log_f, self.log_g = log_ndtr(self.t), log_ndtr(-self.t)
        self.f_by = tuple(hazard(self.t) * d for d in self.t_by)
        self.g_by = tuple(-hazard(-self.t) * d for d in self.t_by)


def binary_share(mu: Vector, sd: Vector, delta: float = 0.0) -> Share:
    """What an output with binary feedback adds to L and S: arrays (B,).

    Args:
        mu, sd: the latent's posterior, (B,), (B,).
        delta: bound on the latent.
    """
    mu, sd = np.atleast_1d(mu), np.atleast_1d(sd)
    a = Answers(mu, sd, delta)
    log = logsumexp(a.log_q + a.log_f, axis=0)
    after, q = np.exp(a.log_q + a.log_f - log), np.exp(a.log_q)  # P(z | legal), Q(z)
    small = a.t < SMALL
    log_surprise = np.where(small, a.log_f, np.log(-np.where(small, -1.0, a.log_g)))  # log(-log(1 - F))
    rest = np.exp(a.log_q + a.log_g + log_surprise - log)
    spread = 2.0 * np.sum((after - q) * a.log_q + rest, axis=0)
    ratio = np.where(small, hazard(a.t), hazard(-a.t) / -np.where(small, -1.0, a.log_g))
    slopes = []
    for q_by, f_by, g_by, t_by in zip(a.q_by, a.f_by, a.g_by, a.t_by, strict=True):
        log_by = np.sum(after * (q_by + f_by), axis=0)
        after_by = after * (q_by + f_by - log_by)
        rest_by = rest * (q_by + g_by + ratio * t_by - log_by)
        slopes.append((log_by, 2.0 * np.sum((after_by - q * q_by) * a.log_q + (after - q) * q_by + rest_by, axis=0)))
    (log_mu, spread_mu), (log_sd, spread_sd) = slopes
    return Share(log, log_mu, log_sd, spread, spread_mu, spread_sd)


def unseen(log: Vector) -> Vector:
    """What outputs that are not evaluated add to S (A.5): 2 (1 - Z) (-log(1 - Z)) / Z, where log is the sum of their log Z.

    They add log to L as they would otherwise.
    """
    z = np.exp(log)
    left = -np.expm1(log)
    small = z < 1e-8
    with np.errstate(divide="ignore", invalid="ignore"):
        full = np.where(left > 0.0, -left * np.log(left), 0.0) / z
    return np.asarray(2.0 * np.where(small, 1.0 - 0.5 * z, full))
