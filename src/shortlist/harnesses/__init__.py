"""Evaluation harnesses as functions that `select(pull_many=..., items=...)` takes.

One module a harness, imported by its own name, so that none needs the others installed:
`with_inspect_ai`, `with_lm_eval`, `with_dspy`."""
