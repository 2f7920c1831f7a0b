"""Outlets that are switched and metered by HTTP, written from their documentation.

Sources: NETIO application note AN21 (JSON API); Shelly API docs, "Gen1 device API" and "Gen2+
device API" (Switch, Authentication by RFC 7616 with SHA-256); Tasmota documentation, Commands,
"With web requests", and "JSON Status Responses"; Gude wiki, "EPC HTTP interface" and "HTTP JSON
Sensor Data".
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from pathlib import Path

USER, PASSWORD = "admin", "pass word&1"
#: Number of the first outlet, by model.
FIRST = {"netio": 1, "shelly-gen1": 0, "shelly-gen2": 0, "tasmota": 1, "gude": 1}
_REALM, _NONCE = "outlet", "5f1e"


@dataclass
class Asked:
    """A request with its user and password."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    authorization: str


@dataclass
class Emulator:
    """An outlet strip with two outlets, which may be out of order."""

    model: str
    states: dict[int, bool] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    #: It accepts requests and does nothing.
    stuck: bool = False
    #: Status and text of its answers, in place of the true ones.
    instead: tuple[int, str] | None = None
    #: Seconds before it answers.
    late_s: float = 0
    certificate: tuple[Path, Path] | None = None
    #: Power of the second outlet; the first one takes none. ``None``: no outlet has a meter.
    watts: float | None = 42.0

    def __enter__(self) -> Self:
        first = FIRST[self.model]
        self.states = {first: False, first + 1: False}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        scheme = "https" if self.certificate else "http"
        return f"{scheme}://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """Return status and JSON."""
        self.asked.append(asked)
        time.sleep(self.late_s)
        allowed = {"tasmota": _by_query, "shelly-gen2": _by_digest}.get(self.model, _by_basic)
        if not allowed(asked):
            return 401, {"WARNING": "Need user=<username>&password=<password>"}
        answers = {
            "netio": self._netio,
            "shelly-gen1": self._shelly_gen1,
            "shelly-gen2": self._shelly_gen2,
            "tasmota": self._tasmota,
            "gude": self._gude,
        }
        return answers[self.model](asked)

    def _meter(self, outlet: int) -> float:
        return 0.0 if outlet == FIRST[self.model] else self.watts or 0.0

    def _turn(self, outlet: int, *, on: bool) -> None:
        if not self.stuck:
            self.states[outlet] = on

    def _netio(self, asked: Asked) -> tuple[int, Any]:
        if asked.path != "/netio.json":
            return 404, None
        for output in asked.body["Outputs"] if asked.method == "POST" else ():
            if output["ID"] in self.states and output["Action"] in {0, 1}:
                self._turn(output["ID"], on=output["Action"] == 1)
        outputs: list[dict[str, Any]] = [
            {"ID": number, "Name": f"output_{number}", "State": int(on), "Action": 6}
            for number, on in self.states.items()
        ]
        for output in outputs if self.watts is not None else ():
            load = round(self._meter(output["ID"]))
            output |= {"Load": load, "Current": round(load / 0.23), "Energy": 1071}
        measure = {"Voltage": 230.4, "Frequency": 50.0, "TotalLoad": 42}
        agent = {"Model": "PowerPDU 4C", "JSONVer": "2.1"}
        return 200, {"Agent": agent, "GlobalMeasure": measure, "Outputs": outputs}

    def _shelly_gen1(self, asked: Asked) -> tuple[int, Any]:
        metered = _number(r"/meter/(\d+)", asked.path)
        if metered in self.states and self.watts is not None:
            told = {"power": self._meter(metered), "overpower": 0.0, "is_valid": True}
            return 200, told | {"counters": [42.0, 41.9, 42.1], "total": 64_260}
        outlet = _number(r"/relay/(\d+)", asked.path)
        if outlet not in self.states:
            return 404, "Not Found"
        if "turn" in asked.query:
            self._turn(outlet, on=asked.query["turn"] == "on")
        return 200, {"ison": self.states[outlet], "has_timer": False, "source": "http"}

    def _shelly_gen2(self, asked: Asked) -> tuple[int, Any]:
        outlet = int(asked.query["id"])
        if outlet not in self.states:
            return 500, {"code": -105, "message": f"Argument 'id', value {outlet} not found!"}
        before = self.states[outlet]
        if asked.path == "/rpc/Switch.Set":
            self._turn(outlet, on={"true": True, "false": False}[asked.query["on"]])
            return 200, {"was_on": before}
        if asked.path == "/rpc/Switch.GetStatus":
            told: dict[str, Any] = {"id": outlet, "source": "HTTP_in", "output": before}
            if self.watts is not None:
                told |= {"apower": self._meter(outlet), "voltage": 230.4, "current": 0.183}
                told |= {"aenergy": {"total": 1071.0, "by_minute": [700.1, 699.8, 700.3]}}
            return 200, told
        return 404, {"code": 404, "message": f"No handler for {asked.path}"}

    def _tasmota(self, asked: Asked) -> tuple[int, Any]:
        if asked.query["cmnd"] == "Status 10":
            return 200, {"StatusSNS": {"Time": "2026-11-23T04:05:06"} | self._tasmota_energy()}
        name, _, value = asked.query["cmnd"].partition(" ")
        outlet = _number(r"Power(\d*)", name)
        if asked.path != "/cm" or outlet not in self.states:
            return 200, {"Command": "Unknown"}
        if value:
            self._turn(outlet, on=value.lower() == "on")
        return 200, {f"POWER{outlet}": "ON" if self.states[outlet] else "OFF"}

    def _tasmota_energy(self) -> dict[str, Any]:
        if self.watts is None:
            return {}
        power = [round(self._meter(outlet)) for outlet in self.states]
        energy = {"Total": 1.071, "Yesterday": 0.3, "Power": power, "Voltage": 230}
        return {"ENERGY": energy | {"Current": [0.0, 0.183]}}

    def _gude(self, asked: Asked) -> tuple[int, Any]:
        if asked.path != "/status.json":
            return 404, None
        if asked.query.get("cmd") == "1" and int(asked.query["p"]) in self.states:
            self._turn(int(asked.query["p"]), on=asked.query["s"] == "1")
        outputs = [
            {"name": f"Power Port {number}", "state": int(on), "type": 1, "batch": [0, 0, 0, 0, 0]}
            for number, on in self.states.items()
        ]
        components = int(asked.query["components"])
        told: dict[str, Any] = {"outputs": outputs} if components & 1 else {}
        if components & 0x14000 == 0x14000 and self.watts is not None:
            told |= _gude_sensors([self._meter(outlet) for outlet in self.states])
        return 200, told


def _gude_sensors(watts: list[float]) -> dict[str, Any]:
    """Return a thermometer, and a meter of each port."""
    fields = [
        {"name": "Voltage", "unit": "V", "decPrecision": 1},
        {"name": "Current", "unit": "A", "decPrecision": 3},
        {"name": "ActivePower", "unit": "W", "decPrecision": 0},
        {"name": "AbsActiveEnergy", "unit": "kWh", "decPrecision": 3},
    ]
    warm = [{"name": "Temperature", "unit": "deg C", "decPrecision": 1}]
    names = [{"id": str(port), "name": f"Power Port {port}"} for port in range(1, len(watts) + 1)]
    rows = [[{"v": 230.4}, {"v": 0.183}, {"v": round(one)}, {"v": 1.071}] for one in watts]
    return {
        "sensor_descr": [
            {"type": 20, "num": 1, "fields": warm, "properties": [{"id": "7101", "name": "air"}]},
            {"type": 9, "num": len(watts), "fields": fields, "properties": names},
        ],
        "sensor_values": [
            {"type": 20, "num": 1, "values": [[{"v": 23.5}]]},
            {"type": 9, "num": len(watts), "values": rows},
        ],
    }


def _number(pattern: str, text: str) -> int:
    found = re.fullmatch(pattern, text)
    return int(found.group(1)) if found and found.group(1) else -1


def _by_query(asked: Asked) -> bool:
    return (asked.query.get("user"), asked.query.get("password")) == (USER, PASSWORD)


def _by_basic(asked: Asked) -> bool:
    expected = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    return asked.authorization == f"Basic {expected}"


def _by_digest(asked: Asked) -> bool:
    told = dict(re.findall(r'(\w+)="?([^",]*)"?', asked.authorization.removeprefix("Digest ")))
    if told.get("nonce") != _NONCE:
        return False
    ha1 = _sha256(f"{USER}:{_REALM}:{PASSWORD}")
    ha2 = _sha256(f"{asked.method}:{told['uri']}")
    response = _sha256(f"{ha1}:{_NONCE}:{told['nc']}:{told['cnonce']}:auth:{ha2}")
    return bool(told["response"] == response)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, emulator: Emulator, *arguments: Any) -> None:
        self._emulator = emulator
        super().__init__(*arguments)

    def do_GET(self) -> None:
        self._do(None)

    def do_POST(self) -> None:
        self._do(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - its name there
        pass

    def _do(self, body: Any) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        authorization = self.headers.get("Authorization", "")
        status, told = self._emulator.answer(
            Asked(self.command, parts.path, query, body, authorization)
        )
        text = json.dumps(told)
        if self._emulator.instead:
            status, text = self._emulator.instead
        self.send_response(status)
        if status == 401 and self._emulator.model == "shelly-gen2":
            challenge = f'qop="auth", realm="{_REALM}", nonce="{_NONCE}", algorithm=SHA-256'
            self.send_header("WWW-Authenticate", f"Digest {challenge}")
        self.send_header("Location", "http://127.0.0.1:9/")
        with suppress(BrokenPipeError):  # who asked may have given up
            self.end_headers()
            self.wfile.write(text.encode())
