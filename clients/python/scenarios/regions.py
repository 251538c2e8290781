"""A client with preferred regions goes on working while regions go away, drain and fail over.

`clients/run` names the control port in PERI_CONTROL; without it there is nobody to take a region down.
"""

import asyncio
import contextlib
import json
import os
import urllib.parse
import urllib.request

from harness import collect, equal, scenario

CONTROL = os.environ.get("PERI_CONTROL", "").rstrip("/")
WRITER, NEAR, FAR = "West US", "East US", "North Europe"
ITEMS = 10
# A region that answers nothing is left after this long.
PATIENCE = {"connection_timeout": 2, "read_timeout": 2}


def region(name, trouble, **details):
    """Does something to a region: down, up, drain, failover."""
    url = f"{CONTROL}/regions/{urllib.parse.quote(name)}/{trouble}"
    body = json.dumps(details).encode()
    request = urllib.request.Request(url, data=body, headers={"content-type": "application/json"}, method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        answer.read()


@contextlib.contextmanager
def troubled(name, trouble, **details):
    region(name, trouble, **details)
    try:
        yield
    finally:
        region(name, "up")


async def near_client(account):
    """A filled container as a client that reads in East US sees it, and elsewhere if it has to."""
    container = await account.container()
    for number in range(ITEMS):
        await container.create_item({"id": str(number), "pk": f"k{number}", "n": number})
    client = await account.open(preferred_locations=[NEAR, FAR, WRITER], **PATIENCE)
    near = client.get_database_client(account.database.id).get_container_client(container.id)
    await reads_everything(near)
    return near


async def reads_everything(container):
    for number in range(ITEMS):
        item = await until_it_arrives(container, number)
        equal(item["n"], number)
    found = await collect(container.query_items("SELECT VALUE COUNT(1) FROM c"))
    equal(found, [ITEMS])


async def until_it_arrives(container, number):
    """Regions are a few milliseconds apart, and another client wrote it."""
    for attempt in range(50):
        try:
            return await container.read_item(item=str(number), partition_key=f"k{number}")
        except Exception as error:
            if getattr(error, "status_code", None) != 404 or attempt == 49:
                raise
        await asyncio.sleep(0.02)


@scenario
async def regions_down_are_left_for_the_next_preferred_one(account):
    if not CONTROL:
        return
    for details in ({"as": "refused"}, {"as": "unavailable"}):
        container = await near_client(account)
        with troubled(NEAR, "down", **details):
            await reads_everything(container)
            await container.upsert_item({"id": "0", "pk": "k0", "n": 0})
        await reads_everything(container)


@scenario
async def regions_that_swallow_requests_are_left_after_the_client_s_own_patience(account):
    if not CONTROL:
        return
    container = await near_client(account)
    with troubled(NEAR, "down", **{"as": "blackHole"}):
        # The synchronous SDK gives each request its time anew, and tries again where it was.
        equal((await container.read_item(item="1", partition_key="k1"))["n"], 1)
    await reads_everything(container)


@scenario
async def regions_that_drain_are_left(account):
    if not CONTROL:
        return
    container = await near_client(account)
    with troubled(NEAR, "drain"):
        await reads_everything(container)
        await container.upsert_item({"id": "0", "pk": "k0", "n": 0})
    await reads_everything(container)


@scenario
async def regions_fail_over_and_writes_follow(account):
    if not CONTROL:
        return
    container = await near_client(account)
    try:
        for number, name in enumerate((NEAR, FAR, WRITER)):
            region(name, "failover")
            await container.upsert_item({"id": "0", "pk": "k0", "n": 0, "round": number})
            item = await container.read_item(item="0", partition_key="k0")
            equal(item["round"], number, f"after the failover to {name}")
        await reads_everything(container)
    finally:
        region(WRITER, "failover")
