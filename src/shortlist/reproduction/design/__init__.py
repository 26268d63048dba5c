"""What is run: panels, methods, budgets, how many runs, from which seed."""
