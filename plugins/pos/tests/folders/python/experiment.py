#!/usr/bin/env python3
"""An experiment that uses the Python API of pos."""

import io
import json
import sys

from poslib import api as pos
from poslib.restapi import RESTError

node, other = sys.argv[1:]
pos.allocations.free(node)
number, _, folder = pos.allocations.allocate([node, other])
given = io.BytesIO(json.dumps({"cores": [1, 2, 3]}).encode())
pos.allocations.set_variables(node, given, extension="json", as_global=False, as_loop=True)
pos.allocations.set_variables(node, "node/variables.yml", "yml")
pos.roles.add("all", [node, other])
pos.nodes.image(node, "host")
pos.nodes.bootparameters(node, "isolcpus=1 nohz_full=1", delete=False)
pos.nodes.reset(node)
facts, _ = pos.nodes.show(node)
assert facts[node]["processor"][0]["threads"] >= 1
pos.nodes.copy(node, "node/data.txt", "/root/data/")
with open("node/run.sh", encoding="utf-8") as script:
    _, data = pos.commands.launch(node=node, infile=script, blocking=True, name="run", loop=True)
assert data["status"] == "finished", data
command, _ = pos.commands.launch(node, command=["cat", "/root/data/data.txt"], queued=True)
assert pos.commands.await_id(command)["stdout"] == "some data\n"
assert any(path.endswith("result_run1.txt") for path in pos.results.list(number))
try:
    pos.nodes.image(node, "no-such-image")
except RESTError as error:
    print("refused:", error)
described, _ = pos.allocations.show(node)
assert described["result_folder"] == folder
pos.allocations.free(number)
