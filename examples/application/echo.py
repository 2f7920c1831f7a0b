"""The application of docs/tutorial-application.md: it answers datagrams on a port."""

import pathlib
import socket
import sys

pathlib.Path("/proc/self/comm").write_text("echo")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as endpoint:
    endpoint.bind(("127.0.0.1", int(sys.argv[1])))
    while True:
        datagram, sender = endpoint.recvfrom(2048)
        endpoint.sendto(datagram, sender)
