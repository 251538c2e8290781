"""Queries that need no merging: one partition, or rows that stand alone."""

from harness import check, collect, equal, fails, headers_of, scenario

FAMILIES = [
    {
        "id": "1",
        "pk": "a",
        "n": 5,
        "name": "Ann",
        "tags": ["x", "y"],
        "address": {"city": "Oslo"},
        "children": [{"n": "A", "age": 3}, {"n": "B", "age": 9}],
    },
    {
        "id": "2",
        "pk": "a",
        "n": 2,
        "name": "bob",
        "tags": [],
        "address": {"city": "Rome"},
        "children": [{"n": "C", "age": 12}],
    },
    {"id": "3", "pk": "a", "n": 9, "name": "Cid", "tags": ["y"], "address": {"city": "Oslo"}},
    {"id": "4", "pk": "a", "n": None, "name": "Dee"},
    {"id": "5", "pk": "a", "name": "Eve", "n": "text"},
]

# (query, parameters, expected rows in order)
IN_ONE_PARTITION = [
    ("SELECT VALUE c.id FROM c WHERE c.n > 2 ORDER BY c.n", {}, ["1", "3"]),
    (
        "SELECT VALUE c.id FROM c WHERE c.n >= @low AND c.n <= @high ORDER BY c.n DESC",
        {"@low": 2, "@high": 5},
        ["1", "2"],
    ),
    ("SELECT VALUE c.id FROM c WHERE c.n BETWEEN 2 AND 5 ORDER BY c.id", {}, ["1", "2"]),
    ("SELECT VALUE c.id FROM c WHERE c.n IN (2, 9, 'text') ORDER BY c.id", {}, ["2", "3", "5"]),
    (
        "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(@ids, c.id) ORDER BY c.id",
        {"@ids": ["1", "4"]},
        ["1", "4"],
    ),
    ("SELECT VALUE c.id FROM c WHERE c.name LIKE '%e%' ORDER BY c.id", {}, ["4", "5"]),
    ("SELECT VALUE c.id FROM c WHERE STARTSWITH(c.name, 'b')", {}, ["2"]),
    ("SELECT VALUE c.id FROM c WHERE STARTSWITH(c.name, 'a', true)", {}, ["1"]),
    ("SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.children) ORDER BY c.id", {}, ["3", "4", "5"]),
    ("SELECT VALUE c.id FROM c WHERE IS_NULL(c.n)", {}, ["4"]),
    ("SELECT VALUE c.id FROM c WHERE c.n != null ORDER BY c.id", {}, ["1", "2", "3", "5"]),
    ("SELECT VALUE c.id FROM c WHERE c.address.city = 'Oslo' AND ARRAY_CONTAINS(c.tags, 'x')", {}, ["1"]),
    ("SELECT c.id, c.address.city FROM c WHERE c.id = '2'", {}, [{"id": "2", "city": "Rome"}]),
    ("SELECT c.id AS who, c.nothing FROM c WHERE c.id = '2'", {}, [{"who": "2"}]),
    (
        'SELECT {"k": c.id, "u": UPPER(c.name)} AS o FROM c WHERE c.id = "2"',
        {},
        [{"o": {"k": "2", "u": "BOB"}}],
    ),
    ("SELECT VALUE [c.id, c.n, c.nothing] FROM c WHERE c.id = '1'", {}, [["1", 5]]),
    ("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.id DESC", {}, ["5", "4"]),
    ("SELECT TOP @n VALUE c.id FROM c ORDER BY c.id", {"@n": 1}, ["1"]),
    ("SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 1 LIMIT 2", {}, ["2", "3"]),
    ("SELECT VALUE c.id FROM c ORDER BY c.id OFFSET @o LIMIT @l", {"@o": 4, "@l": 5}, ["5"]),
    ("SELECT VALUE c.id FROM c ORDER BY c.n, c.id", {}, ["4", "2", "1", "3", "5"]),
    ("SELECT DISTINCT VALUE c.address.city FROM c ORDER BY c.address.city", {}, ["Oslo", "Rome"]),
    (
        "SELECT c.id, k.n FROM c JOIN k IN c.children WHERE k.age > 5 ORDER BY c.id",
        {},
        [{"id": "1", "n": "B"}, {"id": "2", "n": "C"}],
    ),
    ("SELECT VALUE t FROM c JOIN t IN c.tags", {}, ["x", "y", "y"]),
    ("SELECT VALUE k.n FROM k IN c.children", {}, ["A", "B", "C"]),
    ("SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE k FROM k IN c.children WHERE k.age < 5)", {}, ["1"]),
    ("SELECT VALUE ARRAY(SELECT VALUE k.n FROM k IN c.children) FROM c WHERE c.id = '1'", {}, [["A", "B"]]),
    ("SELECT VALUE (SELECT VALUE COUNT(1) FROM k IN c.children) FROM c WHERE c.id = '1'", {}, [2]),
    ("SELECT VALUE COUNT(1) FROM c", {}, [5]),
    (
        "SELECT COUNT(1) AS n, MIN(c.id) AS low, MAX(c.id) AS high FROM c",
        {},
        [{"n": 5, "low": "1", "high": "5"}],
    ),
    ("SELECT VALUE SUM(c.n) FROM c WHERE IS_NUMBER(c.n)", {}, [16]),
    ("SELECT VALUE AVG(c.n) FROM c WHERE c.n IN (5, 9)", {}, [7]),
    ("SELECT VALUE MIN(c.n) FROM c WHERE false", {}, []),
    ("SELECT VALUE COUNT(1) FROM c WHERE false", {}, [0]),
    (
        "SELECT c.address.city, COUNT(1) AS n FROM c WHERE IS_DEFINED(c.address) GROUP BY c.address.city",
        {},
        [{"city": "Oslo", "n": 2}, {"city": "Rome", "n": 1}],
    ),
    ("SELECT VALUE c.nothing ?? c.id FROM c WHERE c.id = '1'", {}, ["1"]),
    (
        "SELECT VALUE (c.n > 4 ? 'big' : 'small') FROM c WHERE IS_NUMBER(c.n) ORDER BY c.id",
        {},
        ["big", "small", "big"],
    ),
    ("SELECT VALUE c.id || '-' || c.name FROM c WHERE c.id = '1'", {}, ["1-Ann"]),
    ("SELECT VALUE c['address']['city'] FROM c WHERE c.id = '1'", {}, ["Oslo"]),
    ("SELECT VALUE LENGTH(c.name) + ARRAY_LENGTH(c.tags) * 10 FROM c WHERE c.id = '1'", {}, [23]),
    ("SELECT VALUE DateTimePart('year', '2024-05-06T07:08:09Z')", {}, [2024]),
    ("SELECT VALUE 1 + 1", {}, [2]),
]


async def families(account, container):
    for family in FAMILIES:
        await container.create_item(family)
    return container


def parameters(values):
    return [{"name": name, "value": value} for name, value in values.items()]


@scenario
async def queries_in_one_partition(account):
    policy = {"compositeIndexes": [[{"path": "/n"}, {"path": "/id"}]]}
    container = await families(account, await account.several_partitions(indexing_policy=policy))
    wrong = []
    for query, values, expected in IN_ONE_PARTITION:
        try:
            found = await collect(
                container.query_items(query, parameters=parameters(values), partition_key="a")
            )
        except Exception as error:
            wrong.append(f"{query}\n    expected {expected}\n    raised   {str(error)[:300]}")
            continue
        if "GROUP BY" in query:
            found.sort(key=str)
        if found != expected:
            wrong.append(f"{query}\n    expected {expected}\n    found    {found}")
    check(not wrong, "\n  ".join(["some queries answered wrongly:", *wrong]))


@scenario
async def filters_and_projections_across_partitions(account):
    container = await account.several_partitions()
    for number in range(60):
        await container.create_item(
            {"id": str(number), "pk": f"k{number % 20}", "n": number, "list": [number, -number]}
        )

    async def rows(query, **values):
        return sorted(await collect(container.query_items(query, parameters=parameters(values))), key=str)

    equal(len(await rows("SELECT * FROM c")), 60)
    equal(await rows("SELECT VALUE c.n FROM c WHERE c.n < 3"), [0, 1, 2])
    equal(await rows("SELECT VALUE c.n FROM c WHERE c.n IN (1, 20, 59, 60)"), sorted([1, 20, 59], key=str))
    equal(await rows("SELECT c.n, UPPER(c.pk) AS k FROM c WHERE c.id = '7'"), [{"n": 7, "k": "K7"}])
    equal(await rows("SELECT VALUE x FROM c JOIN x IN c.list WHERE c.n = 5"), [-5, 5])
    equal(await rows("SELECT VALUE c.n FROM c WHERE c.pk = 'k3'"), sorted([3, 23, 43], key=str))
    equal(await rows("SELECT VALUE c.n FROM c WHERE c.pk IN ('k3', 'k4') AND c.n < 20"), [3, 4])
    equal(await rows("SELECT VALUE 1"), [1], "a query without FROM")
    equal(await rows("SELECT * FROM c WHERE false"), [])


@scenario
async def queries_report_metrics(account):
    container = await families(account, await account.container())
    query = "SELECT * FROM c WHERE c.n > 1"
    pages = container.query_items(
        query, partition_key="a", populate_query_metrics=True, populate_index_metrics=True
    )
    equal(len(await collect(pages)), 3)
    headers = headers_of(pages)
    metrics = dict(pair.split("=") for pair in headers["x-ms-documentdb-query-metrics"].split(";"))
    equal(int(metrics["outputDocumentCount"]), 3, "outputDocumentCount")
    check(float(metrics["totalExecutionTimeInMs"]) >= 0, f"{metrics}")
    index = headers["x-ms-cosmos-index-utilization"]
    check("UtilizedSingleIndexes" in str(index), f"index metrics: {index}")
    check("/n/?" in str(index), f"index metrics: {index}")


@scenario
async def index_metrics_name_the_partition_key(account):
    container = await families(account, await account.container())
    pages = container.query_items("SELECT * FROM c", partition_key="a", populate_index_metrics=True)
    equal(len(await collect(pages)), 5)
    found = headers_of(pages)["x-ms-cosmos-index-utilization"]
    lists = (
        "UtilizedSingleIndexes",
        "PotentialSingleIndexes",
        "UtilizedCompositeIndexes",
        "PotentialCompositeIndexes",
    )
    for wanted in lists:
        check(wanted in str(found), f"no {wanted} in {found}")
    check("/pk/?" in str(found), f"{found}")


@scenario
async def every_option_of_a_request_is_taken(account):
    container = await families(account, await account.several_partitions())
    common = {"priority": "High", "throughput_bucket": 1, "excluded_locations": ["East US"]}
    equal((await container.read_item(item="1", partition_key="a", **common))["id"], "1")
    await container.upsert_item({"id": "6", "pk": "a"}, retry_write=1, **common)
    found = await collect(
        container.query_items(
            "SELECT * FROM c WHERE c.n > 1",
            enable_scan_in_query=True,
            continuation_token_limit=1,
            max_integrated_cache_staleness_in_ms=1000,
            populate_query_advice=True,
            availability_strategy=False,
            **common,
        )
    )
    equal(len(found), 3)


@scenario
async def counting_needs_no_documents(account):
    container = await families(account, await account.container())
    pages = container.query_items(
        "SELECT VALUE COUNT(1) FROM c", partition_key="a", populate_query_metrics=True
    )
    equal(await collect(pages), [5])
    metrics = dict(pair.split("=") for pair in headers_of(pages)["x-ms-documentdb-query-metrics"].split(";"))
    equal((metrics["retrievedDocumentCount"], metrics["retrievedDocumentSize"]), ("0", "0"))
    equal(metrics["indexUtilizationRatio"], "1.00")


@scenario
async def computed_properties_are_usable_but_not_shown(account):
    container = await account.several_partitions(
        computed_properties=[{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}]
    )
    for number, text in enumerate(["ANN", "Bob", "aNN"]):
        await container.create_item({"id": str(number), "pk": f"k{number}", "name": text})
    found = await collect(container.query_items("SELECT * FROM c WHERE c.lower = 'ann'"))
    equal(sorted(item["id"] for item in found), ["0", "2"])
    check(all("lower" not in item for item in found), "SELECT * must not show a computed property")
    found = await collect(container.query_items("SELECT c.lower FROM c WHERE c.id = '1'"))
    equal(found, [{"lower": "bob"}])
    found = await collect(container.query_items("SELECT VALUE c.lower FROM c ORDER BY c.lower DESC"))
    equal(found, ["bob", "ann", "ann"])


@scenario
async def bad_queries_are_refused(account):
    container = await account.several_partitions()
    await container.create_item({"id": "1", "pk": "a"})
    for query in (
        "SELECT * frm c",
        "SELECT * from ",
        "nonsense",
        "",
        "SELECT NOFUNCTION(c.a) FROM c",
        "SELECT * FROM c WHERE c.a IS NULL",
        "SELECT LEFT(c.a) FROM c",
        "SELECT x.a FROM c",
        "SELECT * FROM c WHERE c.a = 'open",
        "SELECT TOP -1 * FROM c",
    ):
        for scope in ({"partition_key": "a"}, {}):
            try:
                found = await collect(container.query_items(query, **scope))
            except Exception as error:
                equal(getattr(error, "status_code", None), 400, f"{query!r} {scope}: {error}")
            else:
                check(False, f"{query!r} {scope} answered {found}")
    await fails(
        400,
        collect(container.query_items("SELECT NOFUNCTION(c.a) FROM c", partition_key="a")),
        mentions="SC2005",
    )
    await fails(400, collect(container.query_items("SELECT * frm c", partition_key="a")), mentions="SC1001")
