"""Session tokens: reading one's own writes, and asking for what is not there yet."""

from harness import check, collect, equal, fails, headers_of, scenario


@scenario
async def one_reads_ones_own_writes(account):
    container = await account.several_partitions()
    for number in range(20):
        await container.create_item({"id": str(number), "pk": f"k{number}", "n": 0})
        await container.upsert_item({"id": str(number), "pk": f"k{number}", "n": number})
        equal((await container.read_item(item=str(number), partition_key=f"k{number}"))["n"], number)


@scenario
async def reads_do_not_move_the_token_and_writes_do(account):
    container = await account.container()
    created = headers_of(await container.create_item({"id": "1", "pk": "a"}))
    first = headers_of(await container.read_item(item="1", partition_key="a"))
    second = headers_of(await container.read_item(item="1", partition_key="a"))
    equal(first["x-ms-session-token"], created["x-ms-session-token"])
    equal(second["x-ms-session-token"], created["x-ms-session-token"])
    upserted = headers_of(await container.upsert_item({"id": "1", "pk": "a"}))
    replaced = headers_of(await container.replace_item(item="1", body={"id": "1", "pk": "a"}))
    equal([int(h["lsn"]) - int(created["lsn"]) for h in (upserted, replaced)], [1, 2], "steps of the lsn")
    check("," not in replaced["x-ms-session-token"], "a response names one range only")


@scenario
async def a_token_may_be_handed_to_another_client(account):
    container = await account.container()
    token = headers_of(await container.create_item({"id": "1", "pk": "a"}))["x-ms-session-token"]
    other = await account.open()
    theirs = other.get_database_client(account.database.id).get_container_client(container.id)
    equal((await theirs.read_item(item="1", partition_key="a", session_token=token))["id"], "1")
    found = await collect(theirs.query_items("SELECT * FROM c", partition_key="a", session_token=token))
    equal(len(found), 1)


@scenario
async def a_token_from_the_future_is_not_served(account):
    container = await account.container()
    token = headers_of(await container.create_item({"id": "1", "pk": "a"}))["x-ms-session-token"]
    parts = token.split("#")
    parts[1] = str(int(parts[1]) + 1_000_000)
    await fails(
        404, container.read_item(item="1", partition_key="a", session_token="#".join(parts)), sub_status=1002
    )
    equal((await container.read_item(item="1", partition_key="a"))["id"], "1")


@scenario
async def the_latest_of_several_tokens_is_found(account):
    container = await account.several_partitions()
    one = await container.feed_range_from_partition_key("a")
    tokens = [
        (one, headers_of(await container.upsert_item({"id": "1", "pk": "a"}))["x-ms-session-token"])
        for _ in range(3)
    ]
    latest = await container.get_latest_session_token(tokens, one)
    equal(latest, tokens[-1][1])


@scenario
async def weaker_consistency_is_served_and_stronger_refused(account):
    container = await account.container()
    await container.create_item({"id": "1", "pk": "a"})
    eventual = await account.open(consistency_level="Eventual")
    theirs = eventual.get_database_client(account.database.id).get_container_client(container.id)
    equal((await theirs.read_item(item="1", partition_key="a"))["id"], "1")
    strong = await account.open(consistency_level="Strong")
    theirs = strong.get_database_client(account.database.id).get_container_client(container.id)
    await fails(400, theirs.read_item(item="1", partition_key="a"))
