"""What every scenario stands on: registration, checks, and a report.

A scenario is an `async def` with one argument, an `Account`. It gets a database of its own, which is
deleted afterwards, so scenarios neither see nor disturb one another. The same scenario runs on the
asynchronous SDK and, through `blocking.py`, on the synchronous one.
"""

import asyncio
import inspect
import os
import signal
import time
import traceback
import uuid

from azure.core.exceptions import HttpResponseError
from azure.cosmos import PartitionKey

SECONDS_PER_SCENARIO = 90

SCENARIOS = []


def scenario(function):
    """Registers `function` to be run, in the order of definition."""
    SCENARIOS.append(function)
    return function


class Account:
    """The account under test, as one scenario sees it."""

    def __init__(self, flavour, endpoint, key):
        self.flavour = flavour
        self.endpoint = endpoint
        self.key = key
        self.client = None
        self.database = None
        self._clients = []

    async def open(self, credential=None, endpoint=None, **options):
        """A client of its own; closed when the scenario ends."""
        client = self.flavour.connect(endpoint or self.endpoint, credential or self.key, **options)
        self._clients.append(client)
        await client.__aenter__()
        return client

    async def container(self, partition_key="/pk", throughput=None, **options):
        """A fresh container. `partition_key` is a path, a list of paths or a PartitionKey."""
        if not isinstance(partition_key, PartitionKey):
            kind = "Hash" if isinstance(partition_key, str) else "MultiHash"
            partition_key = PartitionKey(path=partition_key, kind=kind)
        if throughput is not None:
            options["offer_throughput"] = throughput
        return await self.database.create_container(id=name("c"), partition_key=partition_key, **options)

    async def several_partitions(self, partition_key="/pk", **options):
        """A fresh container that spans several physical partitions."""
        container = await self.container(partition_key, throughput=30000, **options)
        ranges = await collect(container.read_feed_ranges())
        check(len(ranges) >= 3, f"30,000 RU/s gave only {len(ranges)} physical partitions")
        return container

    async def begin(self):
        self.client = await self.open()
        self.database = await self.client.create_database(name("db"))

    async def end(self):
        try:
            if self.database is not None:
                await self.client.delete_database(self.database.id)
        finally:
            for client in self._clients:
                await client.__aexit__(None, None, None)


def name(prefix):
    """A name nothing else uses."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def check(condition, otherwise):
    if not condition:
        raise AssertionError(otherwise)


def equal(actual, expected, what="value"):
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {actual!r}")


def ids(items):
    return sorted(item["id"] for item in items)


async def collect(paged):
    """Every element of a paged answer (or of a feed range listing), in order."""
    if inspect.isawaitable(paged) and not hasattr(paged, "__aiter__"):
        paged = await paged
    return [element async for element in paged]


async def fails(status, call, sub_status=None, mentions=None):
    """Runs `call`, which has to be refused with `status`; the error is returned for further checks."""
    try:
        result = await call
    except HttpResponseError as error:
        found = (error.status_code, getattr(error, "sub_status", None))
        if error.status_code != status or (sub_status is not None and found[1] != sub_status):
            raise AssertionError(f"expected {status}/{sub_status}, found {found}: {error}") from error
        if mentions is not None:
            check(mentions in str(error), f"the message should mention {mentions!r}: {error}")
        return error
    raise AssertionError(f"expected {status}, but it succeeded: {result!r}")


def headers_of(result):
    return result.get_response_headers()


async def run(flavour, endpoint, key, only):
    """Runs every scenario whose name contains `only`; returns (passed, failed)."""
    passed = failed = 0
    for function in SCENARIOS:
        title = f"{flavour.NAME} {function.__name__}"
        if only and only not in title:
            continue
        started = time.monotonic()
        try:
            await _run_one(function, flavour, endpoint, key)
        except Exception as error:  # a scenario may fail in any way; all of them are reported
            failed += 1
            print(f"FAIL {title} at {_place(error)}: {type(error).__name__}: {error}", flush=True)
        else:
            passed += 1
            print(f"ok   {title} ({(time.monotonic() - started) * 1000:.0f} ms)", flush=True)
    return passed, failed


def _place(error):
    """Where in this program the error was met: the frames of the SDK say little."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "scenarios" in frame.filename] or frames
    return " < ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in reversed(ours))


async def _run_one(function, flavour, endpoint, key):
    account = Account(flavour, endpoint, key)

    def too_late(_signal, _frame):
        raise TimeoutError(f"still running after {SECONDS_PER_SCENARIO} s")

    # The synchronous SDK blocks the loop, so the limit is a signal rather than a task's timeout.
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(SECONDS_PER_SCENARIO)
    try:
        await account.begin()
        await function(account)
    finally:
        signal.alarm(0)
        await asyncio.wait_for(account.end(), SECONDS_PER_SCENARIO)
