"""The split certificate of docs/certificate.md: rewards that choose are never rewards that prove.

What is declared, on which the guarantee rests: `certificate`, with `offsets` that make it right
(`closed_offsets`, `exact_offsets`), `alpha_spending` and the `holdout`.

What is predicted, which costs pulls if it is wrong: the `candidates`, their `predicted_offsets` and
`expected_charges` (`normal_charges`, `binomial_charges`); `drafting` takes the cheapest by a
`knapsack`, `strengths` finds the best strength, `looks` says when to use a draft, and `final_look`
spends what is left of a budget. `tuning` holds the constants of both."""
