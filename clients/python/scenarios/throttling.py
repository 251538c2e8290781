"""More than the throughput allows. `clients/run` also runs this where it is enforced (PERI_RU=enforce)."""

import asyncio
import os

from harness import check, collect, equal, fails, headers_of, scenario

ENFORCED = os.environ.get("PERI_RU") == "enforce"
# About 6 RU each: three seconds' worth of 400 RU/s.
COUNT = 200


async def load(container):
    """Writes as many at once as an application would, and leaves waiting to the SDK."""
    gate = asyncio.Semaphore(20)

    async def write(number):
        async with gate:
            await container.upsert_item({"id": str(number), "pk": f"k{number}", "n": number})

    await asyncio.gather(*(write(number) for number in range(COUNT)))


@scenario
async def throttling_of_a_large_load_is_waited_out_by_the_sdk(account):
    container = await account.container(throughput=400)
    await load(container)
    equal(await collect(container.query_items("SELECT VALUE COUNT(1) FROM c")), [COUNT])


@scenario
async def throttling_tells_the_impatient_how_long_to_wait(account):
    if not ENFORCED:
        return
    container = await account.container(throughput=400)
    # The SDK takes no retries for the default; one, after a millisecond, comes too early as well.
    impatient = await account.open(retry_throttle_total=1, retry_fixed_interval=1)
    same = impatient.get_database_client(account.database.id).get_container_client(container.id)
    operations = [("upsert", ({"id": str(number), "pk": "a"},)) for number in range(100)]
    spent = float(headers_of(await same.execute_item_batch(operations, partition_key="a"))["x-ms-request-charge"])
    check(spent > 500, f"a hundred writes cost {spent} RU")
    error = await fails(429, same.read_item(item="1", partition_key="a"), sub_status=3200)
    wait = int(error.headers["x-ms-retry-after-ms"])
    check(0 < wait < 2000, f"{wait} ms for {spent} RU")
    # The container's other client waits by itself.
    equal((await container.read_item(item="1", partition_key="a"))["id"], "1")
