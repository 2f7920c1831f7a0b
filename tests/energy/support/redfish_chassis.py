"""A management controller with chassis that tell their power, written from Redfish's schemas.

DSP2046 (Redfish resource and schema guide): ServiceRoot, ComputerSystem, Chassis, Power
(PowerControl, PowerConsumedWatts) and EnvironmentMetrics (PowerWatts, an excerpt of a sensor).
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

V1 = "/redfish/v1"


@dataclass
class Controller:
    """A system in as many chassis, with the power of the first."""

    watts: float | None = 214.0
    newer: bool = True
    chassis: int = 1

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def resource(self, path: str) -> dict[str, Any] | None:
        """Return a resource; ``None`` where there is none of this path."""
        every = [f"{V1}/Chassis/{number}" for number in range(1, self.chassis + 1)]
        links = {"Chassis": [_to(one) for one in every]}
        own = f"{V1}/Chassis/1"
        known: dict[str, dict[str, Any]] = {
            V1: {"RedfishVersion": "1.15.0", "UUID": "1", "Systems": _to(f"{V1}/Systems")}
            | {"Chassis": _to(f"{V1}/Chassis")},
            f"{V1}/Systems": {"Members": [_to(f"{V1}/Systems/1")], "Members@odata.count": 1},
            f"{V1}/Systems/1": {"PowerState": "On", "Links": links},
            f"{own}/Power": {"PowerControl": [{"MemberId": "0", "PowerConsumedWatts": self.watts}]},
        }
        for place in every:
            known[place] = {"ChassisType": "RackMount", "Power": _to(f"{place}/Power")}
        if self.newer:
            metrics = f"{own}/EnvironmentMetrics"
            known[own] = {"ChassisType": "RackMount", "EnvironmentMetrics": _to(metrics)}
            known[metrics] = {"PowerWatts": {"Reading": self.watts}}
        told = known.get(path.rstrip("/"))
        if told is None:
            return None
        name = path.rstrip("/").rpartition("/")[2]
        return {"@odata.id": path, "Id": name, "Name": name} | told


def _to(path: str) -> dict[str, str]:
    return {"@odata.id": path}


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, controller: Controller, *arguments: Any) -> None:
        self._controller = controller
        super().__init__(*arguments)

    def do_GET(self) -> None:
        found = self._controller.resource(self.path)
        text = json.dumps(found or {"error": {"message": "not there"}}).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("OData-Version", "4.0")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - its name there
        pass
