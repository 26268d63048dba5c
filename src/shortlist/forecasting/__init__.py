"""How many pulls a search will need, and what it will lose, before any arm is pulled.

`beliefs` draws means that the arms may have, `trials` runs searches on them and summarises the
results, `picture` draws these."""

from shortlist.forecasting.trials import Forecast, Prospect, forecast

__all__ = ["Forecast", "Prospect", "forecast"]
