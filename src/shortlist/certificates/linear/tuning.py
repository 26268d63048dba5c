"""Constants that only cost pulls if they are wrong."""

FIRST_SHARE = 0.5  # of delta for the first look; later ones get this share of the rest
LOOK_GROWTH = 1.2  # fresh pulls of a look, as a multiple of those of the look before
DESIGN_LOOKS = 6  # looks of a design; then all rewards so far are the pilot of another one
MOST_LOOKS = 30  # then the search goes the way back
PILOT = 20  # pulls of the first pilot per dimension
PILOT_SHARE = 0.1  # of the fresh pulls that a pilot should have
EVEN = 0.1  # share of a design that goes evenly to some arms ...
EVEN_ARMS = 4  # ... this many per coefficient: fewer arms with more pulls show lack of fit better
LEAST_SHARE = 0.1  # of its even share that an arm has, or no pulls at all
DESIGN_STEPS = 40  # of the multiplicative algorithm
RIDGE = 0.1  # information about every coefficient that the pilot begins with
GUESSES = 3  # coefficients drawn from the pilot's uncertainty, to predict a bound
SHIFTS = (-0.25, 0.0, 0.25)  # of the boundary, in typical errors of a mean
SPREADS = (0.8, 1.0, 1.2, 1.4)  # errors to reckon with, in their root mean square over directions
MULTIPLIERS = 120  # that are tried
HOPELESS = (
    20.0  # the part of the radius by misfit, in that by noise, from which on pulls are no use
)
