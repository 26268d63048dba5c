"""How a method is drawn, so that lines are told apart with and without colour."""

from dataclasses import dataclass

from shortlist.reproduction.design.methods import SCALE, SCALED


@dataclass(frozen=True, slots=True)
class Look:
    """A colour of Okabe and Ito, and dashes and a marker for those who do not see it."""

    label: str
    colour: str
    marker: str
    dashes: tuple[float, ...] = ()
    width: float = 1.3


LOOKS = {  # in drawing order
    # wide and pale, since AdaptiveTopK lies on it
    "uniform": Look("uniform", "#F0E442", "", width=5),
    "adaptive-top-k": Look("AdaptiveTopK", "#0072B2", "o", (4, 1.5)),
    SCALED: Look(f"AdaptiveTopK, scale {SCALE:g}", "#56B4E9", "s", (1, 1)),
    "opt-mai": Look("OptMAI", "#009E73", "^", (6, 1.5, 1, 1.5)),
    "clucb-pac": Look("CLUCB-PAC", "#E69F00", "D"),
    "sar": Look("SAR", "#CC79A7", "v", (2.5, 1)),
    "improved-top-k": Look("ImprovedTopK", "#D55E00", "P", (3, 1)),
    "expected-loss": Look("expected loss (ours)", "#000000", "*", width=1.8),
    "certified": Look("certified (ours)", "#000000", "*", width=1.8),
}
MARKERS = ("X", "h", "p", "<", ">", "d")  # of methods without a look of their own
VERMILION = "#D55E00"


def looks_of(methods: list[str]) -> dict[str, Look]:
    """The look of each of these methods, in drawing order; others than ours come last."""
    others = [method for method in methods if method not in LOOKS]
    known = {method: look for method, look in LOOKS.items() if method in methods}
    return known | {
        method: Look(
            method.rpartition(":")[2], VERMILION, MARKERS[place % len(MARKERS)], (1 + place, 1)
        )
        for place, method in enumerate(others)
    }
