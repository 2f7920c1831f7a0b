"""Claims about an experiment, as a file that people write and review, and whether they hold.

::

    - claim: A real-time kernel keeps the tail of a VM below 50 µs
      where: {dut.node: vm, kernel: rt}
      expect: p99.99 < 50us
    - claim: Table II, DPDK-l2fwd in a VM, 99.9 %
      where: {scenario: l2fwd-vm}
      expect: p99.9 prints 14.7 us
    - claim: The real-time kernel is faster than the stock kernel
      a: {kernel: rt}
      b: {kernel: stock}
      expect: p99.9 of A < p99.9 of B

``docs/claims.md`` has the rules; ``schema/claims.json`` is the JSON Schema.

>>> from pathlib import Path
>>> [str(claim) for claim in read(Path("examples/claims/demo.yml"))][0]
'The forwarder delivers 99.9 % of the packets within 1 ms at every rate'
"""

from tailtrim.publishing.claims.claim import Claim, judge_all, read
from tailtrim.publishing.claims.evaluate import Conclusion, Judgement
from tailtrim.publishing.claims.schema import json_schema

__all__ = ["Claim", "Conclusion", "Judgement", "json_schema", "judge_all", "read"]
