"""The change feed, latest version and all versions and deletes."""

import asyncio
from datetime import datetime, timezone

from harness import check, collect, equal, scenario


async def read(container, **options):
    """Everything the feed has now, and the continuation after it."""
    changes = await collect(container.query_items_change_feed(**options))
    return changes, container.client_connection.last_response_headers["etag"]


@scenario
async def the_feed_starts_at_the_beginning(account):
    container = await account.several_partitions()
    for number in range(30):
        await container.create_item({"id": str(number), "pk": f"k{number % 7}"})
    changes, token = await read(container, start_time="Beginning")
    equal(sorted(int(c["id"]) for c in changes), list(range(30)))

    changes, token = await read(container, continuation=token)
    equal(changes, [])
    await container.upsert_item({"id": "3", "pk": "k3", "n": 1})
    await container.create_item({"id": "new", "pk": "k1"})
    changes, token = await read(container, continuation=token)
    equal(sorted(c["id"] for c in changes), ["3", "new"])
    changes, token = await read(container, continuation=token)
    equal(changes, [])


@scenario
async def the_feed_starts_now(account):
    container = await account.several_partitions()
    await container.create_item({"id": "before", "pk": "a"})
    changes, token = await read(container, start_time="Now")
    equal(changes, [])
    await container.create_item({"id": "after", "pk": "a"})
    changes, _ = await read(container, continuation=token)
    equal([c["id"] for c in changes], ["after"])


@scenario
async def the_feed_starts_at_a_time(account):
    container = await account.container()
    await container.create_item({"id": "before", "pk": "a"})
    await asyncio.sleep(2.1)
    start = datetime.now(timezone.utc)
    await asyncio.sleep(1.1)
    await container.create_item({"id": "after", "pk": "a"})
    changes, _ = await read(container, start_time=start)
    equal([c["id"] for c in changes], ["after"])


@scenario
async def the_feed_shows_each_item_once_at_its_newest(account):
    container = await account.container()
    for number in range(5):
        await container.create_item({"id": str(number), "pk": "a", "version": 1})
    await container.upsert_item({"id": "1", "pk": "a", "version": 2})
    await container.upsert_item({"id": "1", "pk": "a", "version": 3})
    await container.delete_item(item="2", partition_key="a")
    changes, _ = await read(container, start_time="Beginning")
    equal([(c["id"], c["version"]) for c in changes], [("0", 1), ("3", 1), ("4", 1), ("1", 3)])
    check(all(c.get("_lsn") for c in changes), "a change carries its _lsn")


@scenario
async def the_feed_of_one_key_and_of_each_range(account):
    container = await account.several_partitions()
    for number in range(40):
        await container.create_item({"id": str(number), "pk": f"k{number % 8}"})
    changes, token = await read(container, start_time="Beginning", partition_key="k3")
    equal(sorted(int(c["id"]) for c in changes), [3, 11, 19, 27, 35])
    await container.create_item({"id": "40", "pk": "k3"})
    await container.create_item({"id": "41", "pk": "k4"})
    changes, _ = await read(container, continuation=token)
    equal([c["id"] for c in changes], ["40"])
    seen = []
    async for feed_range in container.read_feed_ranges():
        changes, _ = await read(container, start_time="Beginning", feed_range=feed_range)
        seen += [int(c["id"]) for c in changes]
    equal(sorted(seen), list(range(42)))


@scenario
async def the_feed_of_a_hierarchical_prefix(account):
    container = await account.several_partitions(["/a", "/b"])
    for number in range(12):
        await container.create_item({"id": str(number), "a": f"a{number % 3}", "b": f"b{number}"})
    changes, _ = await read(container, start_time="Beginning", partition_key=["a1"])
    equal(sorted(int(c["id"]) for c in changes), [1, 4, 7, 10])


@scenario
async def the_feed_comes_in_pages(account):
    container = await account.container()
    for number in range(25):
        await container.create_item({"id": str(number), "pk": "a"})
    seen, pages = [], 0
    async for page in container.query_items_change_feed(start_time="Beginning", max_item_count=10).by_page():
        items = [item["id"] async for item in page]
        pages += 1 if items else 0
        seen += items
    equal(seen, [str(number) for number in range(25)])
    check(pages >= 3, f"{pages} pages")


@scenario
async def all_versions_and_deletes(account):
    container = await account.several_partitions(change_feed_policy={"retentionDuration": 10})
    changes, token = await read(container, start_time="Now", mode="AllVersionsAndDeletes")
    equal(changes, [])
    await container.create_item({"id": "1", "pk": "a", "n": 1})
    await container.upsert_item({"id": "1", "pk": "a", "n": 2})
    await container.replace_item(item="1", body={"id": "1", "pk": "a", "n": 3})
    await container.delete_item(item="1", partition_key="a")
    changes, token = await read(container, continuation=token)
    equal([c["metadata"]["operationType"] for c in changes], ["create", "replace", "replace", "delete"])
    equal([c["current"]["n"] for c in changes[:3]], [1, 2, 3])
    delete = changes[3]
    check("1" in (delete["metadata"].get("id"), delete.get("previous", {}).get("id")), f"{delete}")
    lsns = [c["metadata"]["lsn"] for c in changes]
    equal(lsns, sorted(lsns), "lsn order")
    changes, _ = await read(container, continuation=token)
    equal(changes, [])


@scenario
async def a_batch_is_one_change_of_many_items(account):
    container = await account.several_partitions(change_feed_policy={"retentionDuration": 10})
    _, token = await read(container, start_time="Now", mode="AllVersionsAndDeletes")
    await container.execute_item_batch(
        batch_operations=[("create", ({"id": str(number), "pk": "a"},)) for number in range(5)],
        partition_key="a",
    )
    changes, _ = await read(container, continuation=token, max_item_count=2)
    equal(sorted(c["current"]["id"] for c in changes), ["0", "1", "2", "3", "4"])
    equal(len({c["metadata"]["lsn"] for c in changes}), 1, "LSNs of one batch")


@scenario
async def an_expired_item_is_a_delete(account):
    container = await account.container(change_feed_policy={"retentionDuration": 10}, default_ttl=-1)
    _, token = await read(container, start_time="Now", mode="AllVersionsAndDeletes")
    await container.create_item({"id": "1", "pk": "a", "ttl": 1})
    await asyncio.sleep(2.5)
    changes, _ = await read(container, continuation=token)
    equal([c["metadata"]["operationType"] for c in changes], ["create", "delete"])
    equal(changes[1]["metadata"].get("timeToLiveExpired"), True, "timeToLiveExpired")


@scenario
async def all_versions_cannot_start_in_the_past(account):
    container = await account.container(change_feed_policy={"retentionDuration": 10})
    try:
        await read(container, start_time="Beginning", mode="AllVersionsAndDeletes")
    except ValueError:
        return  # the SDK itself refuses
    except Exception as error:
        equal(getattr(error, "status_code", None), 400, f"{error}")
        return
    check(False, "all versions were served from the beginning")
