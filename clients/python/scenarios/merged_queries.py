"""Cross-partition queries whose rows the SDK merges, by the plan the server gives."""

from harness import check, collect, equal, fails, scenario

COUNT = 90


async def filled(account):
    composite = [{"path": "/team", "order": "descending"}, {"path": "/n", "order": "ascending"}]
    container = await account.several_partitions(indexing_policy={"compositeIndexes": [composite]})
    for number in range(COUNT):
        await container.create_item(
            {
                "id": f"{number:03}",
                "pk": f"k{number % 30}",
                "n": (number * 37) % COUNT,
                "team": number % 3,
                "word": ["alpha", "beta", "gamma", "delta"][number % 4],
                "odd": number % 2 == 1,
            }
        )
    return container


@scenario
async def order_by_across_partitions(account):
    container = await filled(account)

    async def rows(query, **options):
        return await collect(container.query_items(query, **options))

    equal(await rows("SELECT VALUE c.n FROM c ORDER BY c.n"), list(range(COUNT)))
    equal(
        await rows("SELECT VALUE c.n FROM c ORDER BY c.n DESC", max_item_count=7),
        list(reversed(range(COUNT))),
    )
    words = await rows("SELECT VALUE c.word FROM c ORDER BY c.word ASC")
    equal(words, sorted(words))
    equal(len(words), COUNT)
    equal(
        [item["n"] for item in await rows("SELECT * FROM c WHERE c.n >= 80 ORDER BY c.n")],
        list(range(80, 90)),
    )
    equal(
        await rows("SELECT c.id, c.n FROM c WHERE c.n IN (3, 1, 2) ORDER BY c.n DESC"),
        sorted(await rows("SELECT c.id, c.n FROM c WHERE c.n IN (3, 1, 2)"), key=lambda r: -r["n"]),
    )
    pairs = await rows("SELECT c.team, c.n FROM c ORDER BY c.team DESC, c.n ASC")
    equal(
        [(r["team"], r["n"]) for r in pairs],
        sorted(((r["team"], r["n"]) for r in pairs), key=lambda r: (-r[0], r[1])),
    )


@scenario
async def top_offset_and_limit_across_partitions(account):
    container = await filled(account)

    async def rows(query, parameters=None):
        return await collect(container.query_items(query, parameters=parameters or []))

    equal(await rows("SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n"), [0, 1, 2, 3, 4])
    equal(len(await rows("SELECT TOP 5 * FROM c")), 5)
    equal(await rows("SELECT TOP 0 * FROM c"), [])
    equal(
        await rows("SELECT TOP @n VALUE c.n FROM c ORDER BY c.n DESC", [{"name": "@n", "value": 2}]), [89, 88]
    )
    equal(await rows("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3"), [10, 11, 12])
    equal(await rows("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 88 LIMIT 30"), [88, 89])
    equal(await rows("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 500 LIMIT 30"), [])
    equal(len(await rows("SELECT * FROM c OFFSET 80 LIMIT 30")), 10)


@scenario
async def distinct_across_partitions(account):
    container = await filled(account)

    async def rows(query):
        return await collect(container.query_items(query))

    equal(sorted(await rows("SELECT DISTINCT VALUE c.word FROM c")), ["alpha", "beta", "delta", "gamma"])
    equal(
        await rows("SELECT DISTINCT VALUE c.word FROM c ORDER BY c.word"), ["alpha", "beta", "delta", "gamma"]
    )
    equal(
        await rows("SELECT DISTINCT VALUE c.word FROM c ORDER BY c.word DESC"),
        ["gamma", "delta", "beta", "alpha"],
    )
    equal(len(await rows("SELECT DISTINCT c.word, c.odd FROM c")), 4)
    equal(len(await rows("SELECT DISTINCT c.team, c.odd FROM c")), 6)
    equal(len(await rows("SELECT DISTINCT TOP 2 VALUE c.word FROM c")), 2)
    equal(await rows("SELECT DISTINCT c.nothing FROM c"), [{}])


@scenario
async def aggregates_across_partitions(account):
    container = await filled(account)
    for query, expected in (
        ("SELECT VALUE COUNT(1) FROM c", [COUNT]),
        ("SELECT VALUE COUNT(c.nothing) FROM c", [0]),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.odd", [45]),
        ("SELECT VALUE SUM(c.n) FROM c", [COUNT * (COUNT - 1) // 2]),
        ("SELECT VALUE AVG(c.n) FROM c", [(COUNT - 1) / 2]),
        ("SELECT VALUE MIN(c.n) FROM c", [0]),
        ("SELECT VALUE MAX(c.n) FROM c", [COUNT - 1]),
        ("SELECT VALUE MIN(c.word) FROM c", ["alpha"]),
        ("SELECT VALUE MAX(c.word) FROM c", ["gamma"]),
        ("SELECT VALUE MAX(c.n) FROM c WHERE c.n < 0", [None]),
        ("SELECT VALUE COUNTIF(c.odd) FROM c", [45]),
        ("SELECT VALUE SUM(c.n) FROM c WHERE c.n < 3 ORDER BY c.n", [3]),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'k1'", [3]),
    ):
        equal(await collect(container.query_items(query)), expected, query)


@scenario
async def features_the_sdk_cannot_merge_are_refused(account):
    container = await filled(account)
    for query in (
        "SELECT COUNT(1) FROM c",
        "SELECT c.word, COUNT(1) AS n FROM c GROUP BY c.word",
        "SELECT AVG(c.n) FROM c",
    ):
        await fails(400, collect(container.query_items(query)))
    # The same, in one partition, is the server's own work.
    found = await collect(
        container.query_items("SELECT c.word, COUNT(1) AS n FROM c GROUP BY c.word", partition_key="k1")
    )
    equal(sum(row["n"] for row in found), 3)


@scenario
async def order_by_sorts_by_type_first(account):
    container = await account.container()
    values = [None, False, True, -1, 0.5, 2, "", "A", "a"]
    for number, value in enumerate(reversed(values)):
        await container.create_item({"id": str(number), "pk": "a", "v": value})
    await container.create_item({"id": "missing", "pk": "a"})
    found = await collect(container.query_items("SELECT c.v FROM c ORDER BY c.v", partition_key="a"))
    equal([row.get("v", "missing") for row in found], ["missing", *values])
    found = await collect(container.query_items("SELECT c.v FROM c ORDER BY c.v DESC", partition_key="a"))
    equal([row.get("v", "missing") for row in found], [*reversed(values), "missing"])


@scenario
async def queries_by_feed_range_cover_everything_once(account):
    container = await filled(account)
    seen = []
    async for feed_range in container.read_feed_ranges():
        seen += await collect(container.query_items("SELECT VALUE c.n FROM c", feed_range=feed_range))
    equal(sorted(seen), list(range(COUNT)))
    counts = []
    async for feed_range in container.read_feed_ranges():
        counts += await collect(container.query_items("SELECT VALUE COUNT(1) FROM c", feed_range=feed_range))
    equal(sum(counts), COUNT)
    check(sum(1 for count in counts if count) >= 3, f"all items are in few partitions: {counts}")
