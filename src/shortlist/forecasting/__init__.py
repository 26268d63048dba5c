"""How many pulls a search will need, and what it will lose, before any arm is pulled.

`beliefs` draws means that the arms may have, `days` lets time pass, `trials` runs searches on
them, `prospects` summarises and draws the results."""

from shortlist.forecasting.prospects import Forecast, Prospect
from shortlist.forecasting.trials import forecast

__all__ = ["Forecast", "Prospect", "forecast"]
