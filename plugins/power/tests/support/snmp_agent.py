"""An SNMP agent with one object, by scapy's messages: not the implementation of the client."""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass, field
from typing import Any, Self

from scapy.asn1.asn1 import ASN1_GAUGE32, ASN1_NULL, ASN1_OID, ASN1_STRING
from scapy.layers.snmp import SNMP, SNMPresponse, SNMPvarbind

COMMUNITY = "meters"
#: Of a PDU of APC (PowerNet-MIB): the active power of an outlet.
OID = "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.3"


@dataclass
class Agent:
    """It answers GetRequests of its community, on a port of the loopback interface."""

    value: int | str = 42
    silent: bool = False
    asked: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.05)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._socket.close()

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def _serve(self) -> None:
        while not self._ended.is_set():
            try:
                data, peer = self._socket.recvfrom(65_535)
            except TimeoutError:
                continue
            request = SNMP(data)
            # RFC 3584, 5.2: a message of another community is dropped.
            if self.silent or request.community.val.decode() != COMMUNITY:
                continue
            self._socket.sendto(bytes(self._answer(request)), peer)

    def _answer(self, request: Any) -> Any:
        found = []
        for asked in request.PDU.varbindlist:
            oid = asked.oid.val
            self.asked.append(oid)
            bound = SNMPvarbind(oid=ASN1_OID(oid), value=None)
            if oid != OID:
                bound.noSuchObject = ASN1_NULL(0)  # type: ignore[arg-type] # what scapy encodes
            elif isinstance(self.value, int):
                bound.value = ASN1_GAUGE32(self.value)
            else:
                bound.value = ASN1_STRING(self.value.encode())
            found.append(bound)
        answer = SNMPresponse(id=request.PDU.id, varbindlist=found)
        return SNMP(version=request.version, community=request.community, PDU=answer)
