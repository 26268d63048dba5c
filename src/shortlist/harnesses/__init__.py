"""Evaluation harnesses as functions for `select(pull_many=..., items=...)`.

One module per harness, so that none needs the others installed: `with_inspect_ai`,
`with_lm_eval`, `with_dspy`."""
