"""Matches two decoded captures (Parquet) in DuckDB; prints the exact histogram as JSON.

``unique`` is the papers' form: only ingress packets whose signature is unique take part. ``plain``
leaves that out: right only because the synthetic packets are unique, and the best case of DuckDB.

    duckdb_join.py INGRESS.parquet EGRESS.parquet --form unique|plain --threads N
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import duckdb

FORMS = {
    "plain": "select stamp_ns, high, low from read_parquet($ingress)",
    "unique": """
        select stamp_ns, high, low
        from (
            select stamp_ns, high, low, count(*) over (partition by high, low) as copies
            from read_parquet($ingress)
        )
        where copies = 1
    """,
}

HISTOGRAM = """
    with ingress as ({ingress})
    select egress.stamp_ns - ingress.stamp_ns as latency_ns, count(*) as samples
    from ingress join read_parquet($egress) as egress using (high, low)
    where latency_ns > 0 and latency_ns < 5000000000
    group by latency_ns
    order by latency_ns
"""


def main() -> None:
    """Run the query once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ingress")
    parser.add_argument("egress")
    parser.add_argument("--form", choices=FORMS, required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    spill = str(Path(arguments.ingress).resolve().parent / "spill")
    settings = {"threads": arguments.threads, "temp_directory": spill}
    with duckdb.connect(config=settings) as connection:
        files = {"ingress": arguments.ingress, "egress": arguments.egress}
        query = HISTOGRAM.format(ingress=FORMS[arguments.form])
        histogram = connection.execute(query, files).fetchall()
    json.dump({"histogram": histogram}, sys.stdout)


if __name__ == "__main__":
    main()
