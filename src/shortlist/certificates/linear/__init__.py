"""The certificate "linear" (docs/linear.md): the largest regret over a ball of coefficients.

Means are declared linear in known features, or at most a `misfit` from linear ones. `bound` holds
what the proof rests on: the fit to a fixed design, the radius of the ball around it, and an upper
bound on the regret over the ball, also of sets chosen elsewhere. What only costs pulls if it is
wrong: `planning` of the design, `search` of pilot and looks. `lack_of_fit` tests the declaration;
it warns and proves nothing.

Words with a meaning of their own in this package:

    fit         coefficients by least squares from a fixed design, with their information
    ball        coefficients near those of the fit: the true ones are in it, but for delta
    design      the share of pulls of every arm
    way back    a certificate without the declaration, after the test of lack of fit rejected it"""
