"""Captures decoded to Parquet, for engines when a trace is too large for one machine.

::

    DIR/decode.json                                     what was decoded, and how
    DIR/packet/capture=0/bucket=00/part-00000.parquet   the packets of the first capture

``schema/packet.toml`` has the columns. Packets of one signature share a bucket, so that each bucket
can be matched alone.
"""

from tailtrim.analysis.decode.dataset import Captured, Decoded
from tailtrim.analysis.decode.decoding import decode
from tailtrim.analysis.decode.following import follow

__all__ = ["Captured", "Decoded", "decode", "follow"]
