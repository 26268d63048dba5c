"""Numbers that carry a promise, as text: the one place that rounds them.

    regret bound, upper end    up
    confidence, lower end      down
    interval                   outward, to as many digits as its width has: two texts, never one
    mean                       to the nearest, at the digits of its interval

What is printed then never claims more than what was computed. Numbers are taken by their shortest
digits (0.05 in binary is a little more than 0.05): read back as a float, a text is on the same side
of the number as it is here. JSON and CSV do not come here: they have all digits."""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from math import isfinite, isnan

BOUND = 4  # significant digits of a bound, and of the probability that it fails
WIDTH = 3  # significant digits of the width of an interval
POINT = 6  # significant digits of an interval without a width
MOST = 17  # significant digits of a float
PLAIN = -4, 15  # powers of ten that are written without an exponent
EXACT = Context(prec=700, Emin=-(10**6), Emax=10**6)  # no difference of two floats is longer
LARGE = 10_000  # from which on a number with a fraction has commas; whole ones always have
NEXT_TO_1 = Decimal("1e-16")  # a confidence that is 1 as a float may be as far below 1


def bound_text(bound: float, digits: int = BOUND) -> str:
    """A bound from above, rounded up."""
    return _significant(bound, digits, ROUND_CEILING)


def interval_text(low: float, high: float, *, sign: bool = False) -> str:
    """Both ends rounded outward, "low … high"; a dash if neither is known."""
    if not isfinite(low) and not isfinite(high):
        return "-"
    return " … ".join(end_texts(low, high, sign=sign))


def end_texts(low: float, high: float, *, sign: bool = False) -> tuple[str, str]:
    """Both ends rounded outward, and different if the ends are."""
    below = _at(low, _place(low, high), ROUND_FLOOR, sign)
    above = _at(high, _place(low, high), ROUND_CEILING, sign)
    return (_short(below), _short(above)) if below == above else (below, above)


def mean_text(mean: float | None, low: float, high: float, *, sign: bool = False) -> str:
    """An estimate with the digits of the interval around it; a dash if there is none."""
    if mean is None or isnan(mean):
        return "-"
    if not isfinite(high - low):
        return _significant(mean, BOUND, ROUND_HALF_EVEN, sign)
    nearest = _at(mean, _place(low, high), ROUND_HALF_EVEN, sign)
    return _short(nearest) if low == high else nearest


def confidence_text(confidence: float) -> str:
    """A probability with which something holds, rounded down and below 1."""
    return _short(_plain(_sure(confidence)))


def percent_text(confidence: float) -> str:
    """The same in percent, without the sign for it."""
    return _short(_plain(_sure(confidence) * 100))


def failures_text(confidence: float, of: int = 100) -> str:
    """How many of `of` statements fail at most, if each holds with this confidence."""
    return _short(_plain((1 - _sure(confidence)) * of))


def chance_text(chance: float) -> str:
    """An estimated probability in percent; what is not certain is not called so."""
    if isnan(chance):
        return "-"
    if 0 < chance < 0.01:
        return "<1%"
    return ">99%" if 0.99 < chance < 1 else f"{chance:.0%}"


def given_text(value: float) -> str:
    """A number that was given, with all its digits."""
    return repr(float(value)).removesuffix(".0")


def amount_text(value: float) -> str:
    """What pulls cost, to the nearest: six digits, or all before the point."""
    if not isfinite(value):
        return f"{value}"
    exact = _decimal(value)
    return _short(_plain(_quantized(exact, min(0, exact.adjusted() - 5), ROUND_HALF_EVEN)))


def _sure(confidence: float) -> Decimal:
    """A confidence rounded down, to a few digits of what is missing to 1 or of itself."""
    exact = min(_decimal(confidence), 1 - NEXT_TO_1)
    place = min(exact or Decimal(1), 1 - exact).adjusted() - BOUND + 1
    return _quantized(exact, place, ROUND_FLOOR)


def _place(low: float, high: float) -> int:
    """The power of ten to which the ends of an interval, and a mean in it, are rounded."""
    known = [_decimal(end) for end in (low, high) if isfinite(end)]
    largest = max((abs(end) for end in known), default=Decimal(0))
    if len(known) < 2:
        return largest.adjusted() - WIDTH + 1
    width = EXACT.subtract(known[1], known[0])
    digits, measured = (WIDTH, width) if width > 0 else (POINT, largest)
    return max(measured.adjusted() - digits + 1, largest.adjusted() - MOST + 1)


def _at(value: float, place: int, rounding: str, sign: bool = False) -> str:
    """A number rounded to that power of ten; infinities as they are."""
    if not isfinite(value):
        return f"{value:+}" if sign else f"{value}"
    rounded = _quantized(_decimal(value), place, rounding)
    return _plain(rounded, sign)


def _significant(value: float, digits: int, rounding: str, sign: bool = False) -> str:
    """A number rounded to this many significant digits."""
    if not isfinite(value):
        return f"{value}"
    exact = _decimal(value)
    rounded = Context(prec=digits, rounding=rounding, Emin=-(10**6)).plus(exact)
    return _short(_plain(rounded, sign))


def _plain(value: Decimal, sign: bool = False) -> str:
    """Its digits with commas, or with an exponent where there would be many zeros."""
    mark = "+" if sign else ""
    value = abs(value) if value.is_zero() else value
    first = value.adjusted()
    if value.is_zero() and first < PLAIN[0] - BOUND:
        return f"{mark}0"
    if value.is_zero() or PLAIN[0] <= first <= PLAIN[1]:
        text = f"{value:{mark}f}"
        return f"{value:{mark},f}" if "." not in text or abs(value) >= LARGE else text
    mantissa = value.scaleb(-first, EXACT)
    return f"{mantissa:{mark}f}e{first:+03d}"  # two digits of the exponent, as floats have


def _short(text: str) -> str:
    """The same number without zeros behind its point that say nothing."""
    number, mark, exponent = text.partition("e")
    return (number.rstrip("0").rstrip(".") if "." in number else number) + mark + exponent


def _quantized(value: Decimal, place: int, rounding: str) -> Decimal:
    return value.quantize(Decimal((0, (1,), place)), rounding, EXACT)


def _decimal(value: float) -> Decimal:
    return Decimal(repr(float(value)))
