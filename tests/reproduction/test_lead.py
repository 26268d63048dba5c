"""Where a method is neither lowest nor tied is found, and nothing else is."""

import numpy as np

from shortlist.reproduction.findings import Behind, Curve, behind

BUDGETS = np.array([1000, 2000, 3000])


def panel(**rates: list[float]) -> dict[str, dict[str, Curve]]:
    """Curves of 200 runs each on one panel."""
    runs = np.full(3, 200)
    made = {
        method.replace("_", "-"): Curve(
            method.replace("_", "-"), BUDGETS, np.round(np.array(own) * 200).astype(np.int64), runs
        )
        for method, own in rates.items()
    }
    return {"uniform-500": made}


def test_the_lowest_curve_is_never_behind() -> None:
    assert behind(panel(expected_loss=[0.9, 0.1, 0.0], sar=[1.0, 0.5, 0.0]), "expected-loss") == (
        2,
        [],
    )


def test_a_curve_whose_band_holds_the_lowest_is_tied() -> None:
    assert behind(panel(expected_loss=[1.0, 0.35, 0.0], sar=[1.0, 0.3, 0.0]), "expected-loss") == (
        1,
        [],
    )


def test_a_curve_beyond_its_band_is_behind_and_the_rival_is_named() -> None:
    rates = panel(expected_loss=[1.0, 0.5, 0.0], sar=[1.0, 0.3, 0.0], uniform=[1.0, 0.9, 0.0])
    count, worse = behind(rates, "expected-loss")
    low = float(rates["uniform-500"]["expected-loss"].band[0][1])
    assert (count, worse) == (1, [Behind("uniform-500", 2000, 0.5, low, "sar", 0.3)])
    assert low > 0.3


def test_budgets_where_every_method_nearly_always_or_never_fails_do_not_matter() -> None:
    rates = panel(expected_loss=[1.0, 0.045, 0.04], sar=[0.955, 0.0, 0.0])
    assert behind(rates, "expected-loss") == (0, [])
