"""Items: the four verbs, what the answers carry, and what ids and values may be."""

from harness import check, collect, equal, fails, headers_of, ids, name, scenario


@scenario
async def items_are_created_read_replaced_upserted_and_deleted(account):
    container = await account.container()
    created = await container.create_item({"id": "1", "pk": "a", "n": 1})
    for member in ("_rid", "_self", "_etag", "_attachments", "_ts"):
        check(member in created, f"no {member} in {created}")
    equal(await container.read_item(item="1", partition_key="a"), created)

    replaced = await container.replace_item(item="1", body={"id": "1", "pk": "a", "n": 2})
    equal((replaced["n"], replaced["_rid"]), (2, created["_rid"]))
    check(replaced["_etag"] != created["_etag"], "a replace must change the _etag")

    upserted = await container.upsert_item({"id": "1", "pk": "a", "n": 3})
    equal((upserted["n"], upserted["_rid"]), (3, created["_rid"]))
    inserted = await container.upsert_item({"id": "2", "pk": "a", "n": 4})
    check(inserted["_rid"] != created["_rid"], "two items share a _rid")

    await container.delete_item(item="1", partition_key="a")
    await fails(404, container.read_item(item="1", partition_key="a"))
    await fails(404, container.delete_item(item="1", partition_key="a"))
    await fails(404, container.replace_item(item="1", body={"id": "1", "pk": "a"}))
    equal(ids(await collect(container.read_all_items())), ["2"])


@scenario
async def an_id_is_taken_once_per_key(account):
    container = await account.container()
    await container.create_item({"id": "1", "pk": "a"})
    error = await fails(409, container.create_item({"id": "1", "pk": "a"}))
    check("Conflict" in str(error), f"{error}")


@scenario
async def a_missing_id_is_generated_when_asked(account):
    container = await account.container()
    created = await container.create_item({"pk": "a"}, enable_automatic_id_generation=True)
    check(len(created["id"]) >= 32, f"generated id {created['id']!r}")
    equal((await container.read_item(item=created["id"], partition_key="a"))["id"], created["id"])
    await fails(400, container.create_item({"pk": "a"}))


@scenario
async def a_replace_may_rename(account):
    container = await account.container()
    created = await container.create_item({"id": "old", "pk": "a"})
    await container.create_item({"id": "taken", "pk": "a"})
    renamed = await container.replace_item(item="old", body={"id": "new", "pk": "a"})
    equal(renamed["_rid"], created["_rid"], "_rid")
    await fails(404, container.read_item(item="old", partition_key="a"))
    equal((await container.read_item(item="new", partition_key="a"))["_rid"], created["_rid"])
    await fails(409, container.replace_item(item="new", body={"id": "taken", "pk": "a"}))


@scenario
async def ids_may_hold_any_allowed_character(account):
    container = await account.container()
    wanted = [
        "with space",
        "中文😀",
        "a+b%c",
        "per%20cent",
        "x=1&y=2",
        ":colon;",
        "quote'\"",
        "~`!@$^*()[]{}|",
        "trailing.",
    ]
    for item in wanted:
        await container.create_item({"id": item, "pk": "a"})
    for item in wanted:
        equal((await container.read_item(item=item, partition_key="a"))["id"], item)
    equal(ids(await collect(container.query_items("SELECT * FROM c", partition_key="a"))), sorted(wanted))
    for item in wanted:
        await container.delete_item(item=item, partition_key="a")


@scenario
async def ids_are_limited(account):
    container = await account.container()
    await container.create_item({"id": "i" * 1023, "pk": "a"})
    await fails(400, container.create_item({"id": "i" * 1025, "pk": "a"}))
    await fails(400, container.create_item({"id": "", "pk": "a"}))


@scenario
async def values_keep_their_type_and_order(account):
    container = await account.container()
    body = {
        "id": "1",
        "pk": "a",
        "zebra": 1,
        "apple": 2,
        "int": 9007199254740991,
        "negative": -9007199254740991,
        "stamp": 1763240000123,
        "float": 0.1,
        "tiny": 5e-324,
        "huge": 1.7976931348623157e308,
        "text": 'tab\t newline\n quote" back\\ null\u0000 é 中 😀 \u2028',
        "empty": {},
        "none": [],
        "null": None,
        "yes": True,
        "no": False,
        "deep": {"a": [{"b": [[1, [2, {"c": None}]]]}]},
    }
    await container.create_item(body)
    found = await container.read_item(item="1", partition_key="a")
    for member, value in body.items():
        equal(found[member], value, member)
        equal(type(found[member]), type(value), f"type of {member}")
    equal([member for member in found if not member.startswith("_")], list(body), "order of members")


@scenario
async def system_properties_of_the_caller_are_overwritten(account):
    container = await account.container()
    created = await container.create_item(
        {"id": "1", "pk": "a", "_rid": "mine", "_etag": "mine", "_ts": 1, "_self": "mine"}
    )
    check(
        "mine" not in (created["_rid"], created["_etag"], created["_self"]) and created["_ts"] > 1,
        f"{created}",
    )
    check("_lsn" not in created, "_lsn must not be shown")


@scenario
async def answers_carry_charge_session_and_etag(account):
    container = await account.container()
    created = await container.create_item({"id": "1", "pk": "a"})
    headers = headers_of(created)
    check(float(headers["x-ms-request-charge"]) > 0, "no charge")
    for header in (
        "x-ms-session-token",
        "x-ms-activity-id",
        "lsn",
        "x-ms-alt-content-path",
        "x-ms-content-path",
    ):
        check(headers.get(header), f"no {header}")
    equal(headers["etag"], created["_etag"], "etag")
    read = headers_of(await container.read_item(item="1", partition_key="a"))
    equal(float(read["x-ms-request-charge"]), 1.0, "charge of a small read")
    equal(read["x-ms-item-lsn"], headers["lsn"], "x-ms-item-lsn")
    error = await fails(404, container.read_item(item="none", partition_key="a"))
    check(
        error.headers.get("x-ms-session-token") and error.headers.get("lsn"), "a 404 carries session and lsn"
    )


@scenario
async def writes_may_answer_without_a_body(account):
    container = await account.container()
    for result in (
        await container.create_item({"id": "1", "pk": "a"}, no_response=True),
        await container.upsert_item({"id": "1", "pk": "a", "n": 1}, no_response=True),
        await container.replace_item(item="1", body={"id": "1", "pk": "a", "n": 2}, no_response=True),
        await container.patch_item(
            item="1",
            partition_key="a",
            patch_operations=[{"op": "incr", "path": "/n", "value": 1}],
            no_response=True,
        ),
    ):
        equal(dict(result), {}, "body")
        check(headers_of(result).get("etag"), "no etag")
    equal((await container.read_item(item="1", partition_key="a"))["n"], 3)


@scenario
async def an_item_may_be_two_megabytes_and_no_more(account):
    container = await account.container()
    await container.create_item({"id": "big", "pk": "a", "text": "x" * (2 * 1024 * 1024 - 1000)})
    found = await container.read_item(item="big", partition_key="a")
    equal(len(found["text"]), 2 * 1024 * 1024 - 1000)
    error = await fails(
        413, container.create_item({"id": "bigger", "pk": "a", "text": "x" * (2 * 1024 * 1024)})
    )
    check(
        str(error.message).split("\n", 1)[-1].startswith("(RequestEntityTooLarge)")
        or "(RequestEntityTooLarge)" in str(error),
        f"{str(error)[:300]}",
    )


@scenario
async def unique_keys_hold_within_a_logical_partition(account):
    container = await account.container(
        unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}, {"paths": ["/name/first", "/name/last"]}]}
    )
    await container.create_item({"id": "1", "pk": "a", "email": "x@y", "name": {"first": "A", "last": "B"}})
    await fails(
        409,
        container.create_item({"id": "2", "pk": "a", "email": "x@y", "name": {"first": "C", "last": "D"}}),
    )
    await fails(
        409,
        container.create_item({"id": "2", "pk": "a", "email": "z@y", "name": {"first": "A", "last": "B"}}),
    )
    await container.create_item({"id": "2", "pk": "b", "email": "x@y", "name": {"first": "A", "last": "B"}})
    await container.create_item({"id": "3", "pk": "a", "email": "z@y", "name": {"first": "A", "last": "D"}})
    await fails(
        409,
        container.replace_item(
            item="3", body={"id": "3", "pk": "a", "email": "x@y", "name": {"first": "E", "last": "F"}}
        ),
    )
    await container.replace_item(
        item="3", body={"id": "3", "pk": "a", "email": "w@y", "name": {"first": "A", "last": "D"}}
    )
    await container.create_item({"id": "4", "pk": "a", "email": "z@y", "name": {"first": "E", "last": "F"}})
    await container.delete_item(item="1", partition_key="a")
    await container.create_item({"id": "5", "pk": "a", "email": "x@y", "name": {"first": "A", "last": "B"}})


@scenario
async def a_container_holds_many_items(account):
    container = await account.several_partitions()
    for number in range(300):
        await container.upsert_item({"id": name("i"), "pk": f"k{number % 50}", "n": number})
    everything = await collect(container.query_items("SELECT VALUE c.n FROM c"))
    equal(sorted(everything), list(range(300)))
    equal(await collect(container.query_items("SELECT VALUE COUNT(1) FROM c")), [300])
