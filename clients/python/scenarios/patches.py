"""Partial updates: every operation, its limits and its conditions."""

from harness import check, equal, fails, scenario


async def patched(container, *operations, **options):
    result = await container.patch_item(
        item="1", partition_key="a", patch_operations=list(operations), **options
    )
    return {member: value for member, value in result.items() if not member.startswith("_")}


def op(kind, path, value=None, **more):
    operation = {"op": kind, "path": path, **more}
    if kind not in ("remove", "move"):
        operation["value"] = value
    return operation


async def start(account, **members):
    container = await account.container()
    await container.create_item({"id": "1", "pk": "a", **members})
    return container


@scenario
async def patch_add_set_replace_remove(account):
    container = await start(account, n=1, tags=["x", "y"], nested={"a": 1})
    equal((await patched(container, op("add", "/new", {"k": [1]})))["new"], {"k": [1]})
    equal((await patched(container, op("add", "/tags/1", "between")))["tags"], ["x", "between", "y"])
    equal((await patched(container, op("add", "/tags/-", "end")))["tags"], ["x", "between", "y", "end"])
    equal((await patched(container, op("set", "/tags/0", "first")))["tags"], ["first", "between", "y", "end"])
    equal((await patched(container, op("set", "/nested/b", 2)))["nested"], {"a": 1, "b": 2})
    equal((await patched(container, op("replace", "/nested/a", None)))["nested"], {"a": None, "b": 2})
    equal((await patched(container, op("remove", "/tags/1")))["tags"], ["first", "y", "end"])
    final = await patched(container, op("remove", "/nested"))
    check("nested" not in final, f"{final}")


@scenario
async def patch_increment(account):
    container = await start(account, n=1, f=1.5, s="text")
    equal((await patched(container, op("incr", "/n", 5)))["n"], 6)
    equal((await patched(container, op("incr", "/n", -10)))["n"], -4)
    equal((await patched(container, op("incr", "/f", 0.25)))["f"], 1.75)
    equal((await patched(container, op("incr", "/created", 7)))["created"], 7)
    await fails(400, patched(container, op("incr", "/s", 1)))


@scenario
async def patch_move(account):
    container = await start(account, a={"b": 1}, c=2)
    result = await patched(container, op("move", "/d", **{"from": "/a/b"}))
    equal((result["a"], result["d"]), ({}, 1))
    result = await patched(container, op("move", "/d", **{"from": "/c"}))
    equal(result["d"], 2)
    check("c" not in result, f"{result}")
    await fails(400, patched(container, op("move", "/x", **{"from": "/nothing"})))


@scenario
async def patch_paths_may_be_escaped(account):
    container = await start(account, **{"a/b": 1, "m~n": 2})
    result = await patched(container, op("set", "/a~1b", 10), op("incr", "/m~0n", 1))
    equal((result["a/b"], result["m~n"]), (10, 3))


@scenario
async def patch_is_all_or_nothing(account):
    container = await start(account, n=1)
    await fails(400, patched(container, op("set", "/n", 2), op("replace", "/missing", 1)))
    equal((await container.read_item(item="1", partition_key="a"))["n"], 1)
    result = await patched(container, *[op("incr", "/n", 1) for _ in range(10)])
    equal(result["n"], 11)


@scenario
async def patch_refuses_what_it_cannot_do(account):
    container = await start(account, n=1)
    for operations in (
        [],
        [op("set", "/n", 1)] * 11,
        [op("set", "/id", "2")],
        [op("set", "/pk", "b")],
        [op("set", "/_ts", 1)],
        [op("set", "/_etag", "x")],
        [op("add", "/missing/child", 1)],
        [op("remove", "/missing")],
        [op("nonsense", "/n", 1)],
    ):
        await fails(400, patched(container, *operations))
    await fails(
        404,
        container.patch_item(item="none", partition_key="a", patch_operations=[op("set", "/n", 1)]),
    )


@scenario
async def patch_conditions_decide(account):
    container = await start(account, n=1, state="open")
    result = await patched(
        container, op("set", "/state", "closed"), filter_predicate="from c where c.n = 1 and c.state = 'open'"
    )
    equal(result["state"], "closed")
    await fails(
        412,
        patched(container, op("set", "/state", "open"), filter_predicate="from c where c.state = 'open'"),
        sub_status=1110,
    )
    equal((await container.read_item(item="1", partition_key="a"))["state"], "closed")
    await fails(400, patched(container, op("set", "/n", 1), filter_predicate="select nonsense"))
