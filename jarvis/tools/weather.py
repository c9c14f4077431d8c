"""The weather from Open-Meteo, which needs no key."""

from __future__ import annotations

from typing import Any, Literal

from jarvis.tools.protocol import Effect, ToolContext, tool
from jarvis.tools.schema import ToolError

GEOCODING = "https://geocoding-api.open-meteo.com/v1/search"
FORECAST = "https://api.open-meteo.com/v1/forecast"

_MAX_DAYS = 7
_CURRENT = "temperature_2m,apparent_temperature,relative_humidity_2m,weather_code,wind_speed_10m"
_DAILY = "weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum"
_SKIES = {
    0: "clear",
    1: "mostly clear",
    2: "partly cloudy",
    3: "overcast",
    45: "fog",
    48: "rime fog",
    51: "light drizzle",
    53: "drizzle",
    55: "heavy drizzle",
    56: "freezing drizzle",
    57: "heavy freezing drizzle",
    61: "light rain",
    63: "rain",
    65: "heavy rain",
    66: "freezing rain",
    67: "heavy freezing rain",
    71: "light snow",
    73: "snow",
    75: "heavy snow",
    77: "snow grains",
    80: "light showers",
    81: "showers",
    82: "violent showers",
    85: "snow showers",
    86: "heavy snow showers",
    95: "thunderstorm",
    96: "thunderstorm with hail",
    99: "thunderstorm with heavy hail",
}
"""WMO weather interpretation codes, as Open-Meteo documents them."""


@tool(
    Effect.NETWORK,
    when=r"\b(?:weather|forecast|temperature|rain|snow|sunny|wind(?!ow)|umbrella|storm)\w*",
)
def weather(
    context: ToolContext,
    place: str,
    days: int = 1,
    units: Literal["metric", "imperial"] = "metric",
) -> str:
    """Tells the weather now and for the next days.

    Args:
        place: a town
    """
    if context.web is None:
        raise ToolError("the network is not available in this conversation")
    if not place.strip():
        raise ToolError("weather: which place?")
    found = context.web.json(GEOCODING, {"name": place.strip(), "count": "1", "language": "en"})
    results = found.get("results") if isinstance(found, dict) else None
    if not results:
        raise ToolError(f"no place called {place.strip()!r} is known")
    spot = results[0]
    parameters = {
        "latitude": str(spot["latitude"]),
        "longitude": str(spot["longitude"]),
        "timezone": "auto",
        "forecast_days": str(min(max(days, 1), _MAX_DAYS)),
        "current": _CURRENT,
        "daily": _DAILY,
    }
    if units == "imperial":
        parameters |= {
            "temperature_unit": "fahrenheit",
            "wind_speed_unit": "mph",
            "precipitation_unit": "inch",
        }
    try:
        return _report(spot, context.web.json(FORECAST, parameters))
    except (KeyError, IndexError, TypeError) as error:
        raise ToolError("Open-Meteo sent a forecast that cannot be read") from error


def _report(spot: dict[str, Any], forecast: dict[str, Any]) -> str:
    now, now_units = forecast["current"], forecast["current_units"]
    where = ", ".join(
        str(part) for part in (spot.get("name"), spot.get("admin1"), spot.get("country")) if part
    )
    lines = [
        f"{where}, {now['time']}: {_sky(now['weather_code'])},"
        f" {now['temperature_2m']} {now_units['temperature_2m']}"
        f" (feels like {now['apparent_temperature']}),"
        f" humidity {now['relative_humidity_2m']} %,"
        f" wind {now['wind_speed_10m']} {now_units['wind_speed_10m']}"
    ]
    daily, units = forecast["daily"], forecast["daily_units"]
    for index, day in enumerate(daily["time"]):
        lines.append(
            f"{day}: {_sky(daily['weather_code'][index])},"
            f" {daily['temperature_2m_min'][index]} to {daily['temperature_2m_max'][index]}"
            f" {units['temperature_2m_max']},"
            f" {daily['precipitation_sum'][index]} {units['precipitation_sum']} of rain or snow"
        )
    return "\n".join(lines)


def _sky(code: object) -> str:
    return _SKIES.get(code, "unknown") if isinstance(code, int) else "unknown"
