"""Transactional batches."""

from azure.cosmos.exceptions import CosmosBatchOperationError

from harness import check, collect, equal, fails, headers_of, scenario


def item(number, key="a", **more):
    return {"id": str(number), "pk": key, **more}


async def codes(container, operations, key="a"):
    """The status of each operation of a batch that fails, and its index."""
    try:
        await container.execute_item_batch(batch_operations=operations, partition_key=key)
    except CosmosBatchOperationError as error:
        return error.error_index, [result["statusCode"] for result in error.operation_responses]
    raise AssertionError("the batch succeeded")


@scenario
async def a_batch_of_every_operation_succeeds(account):
    container = await account.container()
    for number in range(1, 6):
        await container.create_item(item(number, n=number))
    result = await container.execute_item_batch(
        batch_operations=[
            ("create", (item(10),)),
            ("upsert", (item(11),)),
            ("upsert", (item(1, n=100),)),
            ("replace", ("2", item(2, n=200))),
            ("patch", ("3", [{"op": "incr", "path": "/n", "value": 30}])),
            ("read", ("4",)),
            ("delete", ("5",)),
        ],
        partition_key="a",
    )
    equal([r["statusCode"] for r in result], [201, 201, 200, 200, 200, 200, 204])
    equal([r["resourceBody"].get("n") for r in result[2:6]], [100, 200, 33, 4])
    check("resourceBody" not in result[6], "a delete has no body")
    for r in result[:6]:
        equal(r["eTag"], r["resourceBody"]["_etag"], "eTag")
        check(r["requestCharge"] > 0, "no charge")
    check(float(headers_of(result)["x-ms-request-charge"]) > 0, "no charge")
    await fails(404, container.read_item(item="5", partition_key="a"))


@scenario
async def a_batch_reads_its_own_writes(account):
    container = await account.container()
    result = await container.execute_item_batch(
        batch_operations=[
            ("create", (item(1, n=1),)),
            ("patch", ("1", [{"op": "incr", "path": "/n", "value": 1}])),
            ("read", ("1",)),
        ],
        partition_key="a",
    )
    equal(result[2]["resourceBody"]["n"], 2)


@scenario
async def a_failed_batch_leaves_nothing_behind(account):
    container = await account.container()
    await container.create_item(item(1, n=1))
    cases = [
        ([("create", (item(9),)), ("create", (item(9),))], (1, [424, 409])),
        ([("create", (item(9),)), ("create", (item(8, "other"),))], (1, [424, 400])),
        ([("read", ("none",)), ("create", (item(9),))], (0, [404, 424])),
        ([("upsert", (item(1, n=5),)), ("delete", ("none",)), ("create", (item(9),))], (1, [424, 404, 424])),
        ([("create", (item(9),)), ("replace", ("none", item("none")))], (1, [424, 404])),
        (
            [("patch", ("1", [{"op": "replace", "path": "/none", "value": 1}])), ("create", (item(9),))],
            (0, [400, 424]),
        ),
    ]
    for operations, expected in cases:
        equal(await codes(container, operations), expected, f"{operations}")
    found = await collect(container.query_items("SELECT c.id, c.n FROM c", partition_key="a"))
    equal(found, [{"id": "1", "n": 1}])


@scenario
async def preconditions_hold_inside_a_batch(account):
    container = await account.container()
    first = await container.create_item(item(1, n=1))
    second = await container.upsert_item(item(1, n=2))

    def stale():  # the SDK empties the options it is given, so each operation needs its own
        return {"if_match_etag": first["_etag"]}

    for operation in (
        ("replace", ("1", item(1, n=9)), stale()),
        ("upsert", (item(1, n=9),), stale()),
        ("delete", ("1",), stale()),
        ("patch", ("1", [{"op": "set", "path": "/n", "value": 9}]), stale()),
    ):
        equal(await codes(container, [operation, ("create", (item(2),))]), (0, [412, 424]), operation[0])
    result = await container.execute_item_batch(
        batch_operations=[("replace", ("1", item(1, n=3)), {"if_match_etag": second["_etag"]})],
        partition_key="a",
    )
    equal(result[0]["resourceBody"]["n"], 3)
    equal(
        await codes(
            container,
            [
                (
                    "patch",
                    ("1", [{"op": "set", "path": "/n", "value": 9}]),
                    {"filter_predicate": "from c where c.n = 2"},
                )
            ],
        ),
        (0, [412]),
    )


@scenario
async def batches_are_limited(account):
    container = await account.container()
    await container.execute_item_batch(
        batch_operations=[("create", (item(number),)) for number in range(100)], partition_key="a"
    )
    equal(await collect(container.query_items("SELECT VALUE COUNT(1) FROM c", partition_key="a")), [100])
    await fails(
        400,
        container.execute_item_batch(
            batch_operations=[("upsert", (item(n),)) for n in range(101)], partition_key="a"
        ),
        mentions="Batch request has more operations than what is supported.",
    )
    await fails(
        400,
        container.execute_item_batch(batch_operations=[], partition_key="a"),
        mentions="Batch request has no operations.",
    )
    await fails(
        413,
        container.execute_item_batch(
            batch_operations=[("upsert", (item(n, text="x" * 1_150_000),)) for n in range(2)],
            partition_key="a",
        ),
    )


@scenario
async def batches_work_on_hierarchical_keys(account):
    container = await account.several_partitions(["/a", "/b"])
    result = await container.execute_item_batch(
        batch_operations=[("create", ({"id": str(n), "a": "x", "b": "y"},)) for n in range(3)],
        partition_key=["x", "y"],
    )
    equal([r["statusCode"] for r in result], [201] * 3)
    await fails(
        400,
        container.execute_item_batch(
            batch_operations=[("create", ({"id": "9", "a": "x", "b": "y"},))], partition_key=["x"]
        ),
        mentions="Partition key provided either doesn't correspond to definition in the collection",
    )


@scenario
async def a_batch_is_one_step_of_the_session(account):
    container = await account.container()
    one = headers_of(await container.create_item(item("before")))
    result = await container.execute_item_batch(
        batch_operations=[("create", (item(n),)) for n in range(5)], partition_key="a"
    )
    two = headers_of(result)
    check(two["x-ms-session-token"] != one["x-ms-session-token"], "a batch must move the session token")
    equal(int(two["lsn"]), int(one["lsn"]) + 1, "lsn")
