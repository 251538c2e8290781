"""Pages and continuation tokens."""

from harness import check, equal, fails, headers_of, scenario


async def filled(account, count=50, keys=1):
    container = await account.several_partitions()
    for number in range(count):
        await container.create_item({"id": f"{number:03}", "pk": f"k{number % keys}", "n": number})
    return container


async def page_by_page(query, **options):
    """Runs a query to its end, resuming with the continuation token after every page."""
    pages, token = [], None
    while True:
        cursor = query(**options).by_page(token)
        try:
            page = await cursor.__anext__()
        except StopAsyncIteration:
            return pages
        pages.append([item async for item in page])
        token = cursor.continuation_token
        check(len(pages) < 200, "the continuation never ends")
        if not token:
            return pages


@scenario
async def pages_of_one_partition_resume(account):
    container = await filled(account)

    def query(**options):
        return container.query_items("SELECT * FROM c", partition_key="k0", max_item_count=2, **options)

    pages = await page_by_page(query)
    check(len(pages) >= 20, f"{len(pages)} pages")
    check(all(len(page) <= 2 for page in pages), "a page is larger than asked for")
    equal(sorted(item["n"] for page in pages for item in page), list(range(50)))


@scenario
async def pages_across_partitions_resume(account):
    container = await filled(account, keys=17)

    def query(**options):
        return container.query_items("SELECT * FROM c", max_item_count=5, **options)

    pages = await page_by_page(query)
    check(all(len(page) <= 5 for page in pages), "a page is larger than asked for")
    equal(sorted(item["n"] for page in pages for item in page), list(range(50)))


@scenario
async def ordered_pages_of_one_partition_resume(account):
    container = await filled(account)

    def query(**options):
        return container.query_items(
            "SELECT VALUE c.n FROM c ORDER BY c.n DESC", partition_key="k0", max_item_count=7, **options
        )

    pages = await page_by_page(query)
    equal([n for page in pages for n in page], list(reversed(range(50))))


@scenario
async def a_continuation_may_be_replayed(account):
    container = await filled(account)

    async def second(token):
        cursor = container.query_items(
            "SELECT VALUE c.n FROM c", partition_key="k0", max_item_count=10
        ).by_page(token)
        return [n async for n in await cursor.__anext__()]

    cursor = container.query_items("SELECT VALUE c.n FROM c", partition_key="k0", max_item_count=10).by_page()
    first = [n async for n in await cursor.__anext__()]
    token = cursor.continuation_token
    check(token and len(token) <= 1024, f"continuation of {len(token or '')} bytes")
    once, twice = await second(token), await second(token)
    equal(once, twice)
    check(not set(first) & set(once), "the second page repeats the first")


@scenario
async def a_continuation_survives_writes(account):
    container = await filled(account, count=20)
    cursor = container.query_items("SELECT VALUE c.n FROM c", partition_key="k0", max_item_count=10).by_page()
    first = [n async for n in await cursor.__anext__()]
    await container.create_item({"id": "extra", "pk": "k0", "n": 999})
    await container.delete_item(item=f"{first[0]:03}", partition_key="k0")
    rest = await collect_pages(
        container.query_items("SELECT VALUE c.n FROM c", partition_key="k0", max_item_count=10).by_page(
            cursor.continuation_token
        )
    )
    equal(sorted(n for n in first + rest if n != 999), list(range(20)))


async def collect_pages(cursor):
    return [item async for page in cursor async for item in page]


@scenario
async def every_page_reports_its_count(account):
    container = await filled(account)
    total, headers = 0, []

    def hook(response_headers, _body):
        headers.append(dict(response_headers))

    query = container.query_items(
        "SELECT * FROM c", partition_key="k0", max_item_count=20, response_hook=hook
    )
    async for page in query.by_page():
        total += len([item async for item in page])
    equal(total, 50)
    counts = [int(h["x-ms-item-count"]) for h in headers if "x-ms-item-count" in h]
    equal(sum(counts), 50, "x-ms-item-count")
    check(all(float(h["x-ms-request-charge"]) > 0 for h in headers), "a page without a charge")


@scenario
async def a_bad_continuation_is_refused(account):
    container = await filled(account, count=3)
    cursor = container.query_items("SELECT * FROM c", partition_key="k0", max_item_count=1).by_page(
        "no-such-token"
    )
    await fails(400, cursor.__anext__(), mentions="Invalid Continuation Token")


@scenario
async def large_answers_are_split_into_pages(account):
    container = await account.container()
    for number in range(8):
        await container.create_item({"id": str(number), "pk": "a", "text": "x" * 1_000_000})
    pages = 0
    async for page in container.query_items("SELECT * FROM c", partition_key="a").by_page():
        pages += 1
        size = sum([len(item["text"]) async for item in page])
        check(size <= 5_000_000, f"a page of {size} bytes")
    check(pages >= 2, "8 MB came in one page")


@scenario
async def read_all_items_comes_in_pages(account):
    container = await filled(account, keys=9)
    seen, pages = [], 0
    async for page in container.read_all_items(max_item_count=6).by_page():
        pages += 1
        seen += [item["n"] async for item in page]
    equal(sorted(seen), list(range(50)))
    check(pages >= 50 // 6, f"{pages} pages")
    check(headers_of(await container.read()).get("x-ms-request-charge"), "no charge")
