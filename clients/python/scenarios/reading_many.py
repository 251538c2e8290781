"""Reading many items at once, feed ranges, and conflicts."""

from harness import collect, equal, fails, ids, scenario


@scenario
async def many_items_are_read_at_once(account):
    container = await account.several_partitions()
    for number in range(120):
        await container.create_item({"id": str(number), "pk": f"k{number % 10}"})
    wanted = [(str(number), f"k{number % 10}") for number in range(0, 120, 2)] + [
        ("none", "k1"),
        ("1", "wrong"),
    ]
    found = await container.read_items(items=wanted)
    equal(ids(found), sorted(str(number) for number in range(0, 120, 2)))
    equal(await container.read_items(items=[]), [])
    equal(ids(await container.read_items(items=[("3", "k3")])), ["3"])


@scenario
async def many_items_are_read_by_id_and_by_hierarchical_key(account):
    by_id = await account.several_partitions("/id")
    for number in range(20):
        await by_id.create_item({"id": str(number)})
    equal(len(await by_id.read_items(items=[(str(n), str(n)) for n in range(25)])), 20)
    nested = await account.several_partitions(["/a", "/b"])
    for number in range(20):
        await nested.create_item({"id": str(number), "a": f"a{number % 3}", "b": number})
    found = await nested.read_items(items=[(str(n), [f"a{n % 3}", n]) for n in range(20)])
    equal(len(found), 20)


@scenario
async def feed_ranges_are_contiguous_and_hold_their_keys(account):
    container = await account.several_partitions()
    ranges = await collect(container.read_feed_ranges())
    bounds = [feed_range["Range"] for feed_range in ranges]
    equal((bounds[0]["min"], bounds[-1]["max"]), ("", "FF"))
    for left, right in zip(bounds, bounds[1:]):
        equal(left["max"], right["min"], "a gap between ranges")
    equal(await collect(container.read_feed_ranges(force_refresh=True)), ranges)
    one = await container.feed_range_from_partition_key("key")
    holders = [r for r in ranges if await container.is_feed_range_subset(r, one)]
    equal(len(holders), 1, "ranges that hold one key")


@scenario
async def a_key_may_be_read_as_a_feed_range(account):
    container = await account.several_partitions()
    for number in range(40):
        await container.create_item({"id": str(number), "pk": f"k{number % 8}"})
    one = await container.feed_range_from_partition_key("k3")
    found = await collect(container.query_items("SELECT * FROM c", feed_range=one))
    equal(ids(found), sorted(str(n) for n in range(40) if n % 8 == 3))


@scenario
async def there_are_no_conflicts(account):
    container = await account.container()
    equal(await collect(container.list_conflicts()), [])
    await fails(404, container.get_conflict("none", partition_key="a"))
