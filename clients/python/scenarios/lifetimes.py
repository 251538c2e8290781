"""Time to live."""

import asyncio

from harness import collect, equal, fails, scenario


@scenario
async def items_expire_after_the_containers_default(account):
    container = await account.container(default_ttl=2)
    await container.create_item({"id": "short", "pk": "a"})
    await container.create_item({"id": "forever", "pk": "a", "ttl": -1})
    await container.create_item({"id": "long", "pk": "a", "ttl": 1000})
    equal((await container.read_item(item="short", partition_key="a"))["id"], "short")
    await asyncio.sleep(3.2)
    await fails(404, container.read_item(item="short", partition_key="a"))
    found = await collect(container.query_items("SELECT VALUE c.id FROM c ORDER BY c.id", partition_key="a"))
    equal(found, ["forever", "long"])
    equal(await collect(container.query_items("SELECT VALUE COUNT(1) FROM c", partition_key="a")), [2])
    equal(len(await collect(container.read_all_items())), 2)
    # An expired item is gone: its id is free again, and it cannot be deleted.
    await fails(404, container.delete_item(item="short", partition_key="a"))
    await container.create_item({"id": "short", "pk": "a"})


@scenario
async def items_expire_by_their_own_ttl(account):
    container = await account.container(default_ttl=-1)
    await container.create_item({"id": "kept", "pk": "a"})
    await container.create_item({"id": "short", "pk": "a", "ttl": 1})
    await asyncio.sleep(2.2)
    equal([item["id"] for item in await collect(container.read_all_items())], ["kept"])


@scenario
async def a_ttl_means_nothing_without_a_default(account):
    container = await account.container()
    await container.create_item({"id": "kept", "pk": "a", "ttl": 1})
    await asyncio.sleep(2.2)
    equal((await container.read_item(item="kept", partition_key="a"))["id"], "kept")


@scenario
async def a_write_starts_the_time_again(account):
    # Time is counted in whole seconds, and a busy machine wakes late: two seconds are to spare on each side.
    container = await account.container(default_ttl=6)
    await container.create_item({"id": "1", "pk": "a"})
    await asyncio.sleep(4)
    await container.upsert_item({"id": "1", "pk": "a", "n": 1})
    await asyncio.sleep(4)
    equal((await container.read_item(item="1", partition_key="a"))["n"], 1)


@scenario
async def a_bad_ttl_is_refused(account):
    container = await account.container(default_ttl=100)
    for ttl in (0, -10, None, "1", 1.5):
        await fails(400, container.create_item({"id": str(ttl), "pk": "a", "ttl": ttl}))
    equal(await collect(container.read_all_items()), [])
