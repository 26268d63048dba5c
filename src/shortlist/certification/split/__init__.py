"""The split certificate of docs/certificate.md: rewards that choose are never rewards that prove.

`certificate` is what is declared and `offsets` what makes it right; `predicted_offsets` and
`expected_charges` say what to expect of it, `drafting` finds the cheapest one, and
`looks` says when to use it."""
