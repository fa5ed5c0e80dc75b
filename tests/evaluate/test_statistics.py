"""Intervals and tests against SciPy and against arithmetic by hand."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from lite_workbench.evaluate.results import Metric
from lite_workbench.evaluate.statistics import (
    Measure,
    bootstrap_p,
    draws,
    interval,
    mcnemar,
    mean,
    quantiles,
    ratio,
    share,
)
from scipy.stats import bootstrap


def test_the_interval_of_a_mean_is_that_of_scipy():
    right = np.random.default_rng(1).random(400) < 0.8
    made = share("top-1", right)
    low, high = interval(made, draws(made, len(right)), len(right))
    wanted = bootstrap((right.astype(float),), np.mean, method="percentile", rng=0)
    # both are random: quantiles of 1,000 draws have an error of about a tenth of the width
    assert [low, high] == pytest.approx(list(wanted.confidence_interval), abs=0.008)


def test_a_ratio_follows_from_sums():
    parts = np.array([[1.0, 4.0], [0.0, 6.0], [2.0, 10.0]])
    of = ratio(parts, lambda sums: sums[..., 0] / sums[..., 1])
    assert of(np.array([[1, 1, 1], [3, 0, 0]])).tolist() == [3 / 20, 1 / 4]


def test_all_right_is_not_certain():
    made = share("top-1", np.ones(46))
    low, high = interval(made, draws(made, 46), 46)
    z = 1.959964
    assert (low, high) == pytest.approx((1 / (1 + z * z / 46), 1.0))  # Wilson's, by its formula


def test_nearly_all_right_is_not_certain():
    """A COCO precision is TP / (TP + ε), and a draw without an object has none."""
    made = Measure("mAP", 1 - 2e-16, mean(np.ones(4)))
    low, high = interval(made, np.array([1 - 2e-16, 1.0, np.nan]), 4)
    assert (low, high) == pytest.approx((1 / (1 + 1.959964**2 / 4), 1.0))
    assert interval(made, np.array([0.5, 1 - 2e-16]), 4)[0] < 0.6


def test_no_error_at_all_is_not_certain_either():
    """A ratio like CER, and a mean of other values."""
    z, none = 1.959964, np.zeros((20, 2)) + [0, 7]
    rate = Measure("CER", 0.0, ratio(none, lambda sums: sums[..., 0] / sums[..., 1]))
    low, high = interval(rate, draws(rate, 20), 20)
    assert (low, high) == pytest.approx((0.0, z * z / (20 + z * z)))
    mixed = Measure("mIoU", 1.0, lambda counts: np.linspace(0.9, 1, len(counts)))
    assert interval(mixed, draws(mixed, 20), 20)[0] == pytest.approx(0.9025, abs=1e-3)


def test_draws_do_not_depend_on_how_many_fit_the_memory():
    right = np.random.default_rng(2).random(9000) < 0.5
    made = share("top-1", right)
    assert len(draws(made, 9000)) == 1000  # several blocks
    assert draws(made, 9000).std() == pytest.approx(0.5 / np.sqrt(9000), rel=0.1)


def test_mcnemar_is_the_binomial_test_of_what_changed():
    a = np.array([True] * 9 + [False] * 1 + [True] * 50)
    b = np.array([False] * 9 + [True] * 1 + [True] * 50)
    tail = sum(comb(10, k) for k in (0, 1)) / 2**10
    assert mcnemar(a, b) == pytest.approx(2 * tail)
    assert mcnemar(a, a) == 1.0


def test_a_paired_difference():
    rng = np.random.default_rng(3)
    assert bootstrap_p(rng.normal(0.02, 0.005, 1000)) < 0.01
    assert bootstrap_p(rng.normal(0, 0.005, 1000)) > 0.5
    assert np.isnan(quantiles(np.array([np.nan]))).all()


def test_one_sample_has_no_interval():
    """Every draw of one sample is that sample: nothing is known of others."""
    made = Measure("Hmean", 2 / 3, mean(np.array([2 / 3])))
    assert np.isnan(interval(made, draws(made, 1), 1)).all()
    assert Metric("Hmean", 2 / 3, np.nan, np.nan, True).figure == "66.7 %"
    right = share("top-1", np.ones(1))
    low, high = interval(right, draws(right, 1), 1)
    assert (low, high) == pytest.approx((1 / (1 + 1.959964**2), 1.0))  # Wilson's
