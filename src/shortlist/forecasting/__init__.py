"""How many pulls a search will need, and what it will lose, before any arm is pulled.

`guess` draws means that the arms may have, `prospects` runs searches on them, `picture` draws what
came out."""

from shortlist.forecasting.prospects import Forecast, Prospect, forecast

__all__ = ["Forecast", "Prospect", "forecast"]
