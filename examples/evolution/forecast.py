"""A tool that has changed its name and its input twice, and still accepts earlier calls.

Run it: `longshore serve examples/evolution/forecast.py`
"""

from typing import Annotated, Any

from longshore import Alias, Server

app = Server("weather", version="3.0.0")


def from_v2(city: str, fahrenheit: bool = False) -> dict[str, Any]:
    """Until 3.0 there was a switch for the unit."""
    return {"city": city, "unit": "F" if fahrenheit else "C"}


def from_v1(query: str) -> dict[str, Any]:
    """Until 2.0 it was one text: `Oslo, 3`."""
    city, _, days = query.partition(",")
    return {"city": city, "days": int(days or 3)}


def from_report(place: str, hours: int = 72) -> dict[str, Any]:
    """Report the weather of a place, by the hour."""
    return {"city": place, "days": hours // 24}


@app.tool(
    effects="read",
    aliases={"weather_v1": None, "weather_report": from_report},
    migrations=[from_v2, from_v1],
)
def get_forecast(
    city: Annotated[str, Alias("town"), "The city, in any language"],
    days: Annotated[int, "How many days, 3 unless given"] = 3,
    unit: Annotated[str, "C or F, C unless given"] = "C",
) -> str:
    """Get the weather forecast of a city."""
    return f"{city}, {days} days, °{unit}"


if __name__ == "__main__":
    app.run()
