"""Reads /metrics of a control port with Prometheus' own parser.

Usage: metrics.py CONTROL. Exits with 1 when the text is not what Prometheus expects, or when the requests
that were made before are not in it.
"""

import sys
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families


def main(control):
    with urlopen(control.rstrip("/") + "/metrics", timeout=30) as answer:
        text = answer.read().decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    problems = [f"{family.name} has no type" for family in families.values() if family.type == "unknown"]
    problems += [f"{family.name} has no help" for family in families.values() if not family.documentation]
    problems += check_histogram(families.get("perihelion_request_duration_seconds"))
    requests = families.get("perihelion_requests")
    if not requests or sum(sample.value for sample in requests.samples) < 1:
        problems.append("no request was counted")
    for problem in problems:
        print(problem)
    print(f"metrics: {len(families)} families, {len(problems)} problems")
    return 1 if problems else 0


def check_histogram(family):
    """Buckets grow up to the count."""
    if not family or family.type != "histogram":
        return ["there is no histogram of durations"]
    series = {}
    for sample in family.samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        entry = series.setdefault(tuple(sorted(labels.items())), {"buckets": [], "count": None})
        if sample.name.endswith("_bucket"):
            entry["buckets"].append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_count"):
            entry["count"] = sample.value
    problems = []
    for labels, entry in series.items():
        counts = [count for _, count in sorted(entry["buckets"])]
        if counts != sorted(counts) or not counts or counts[-1] != entry["count"]:
            problems.append(f"the buckets of {labels} do not add up: {entry}")
    return problems


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
