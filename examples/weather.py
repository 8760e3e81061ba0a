from longshore import Server

app = Server("weather", version="1.0.0")


@app.tool
async def forecast(city: str, days: int = 3) -> str:
    """Fetch the weather forecast for a city.

    city: the city's name
    days: how many days ahead (default 3)
    """
    return f"sunny in {city} for {days} days"


if __name__ == "__main__":
    app.run()
