"""Databases: create, read, list, query, delete, and the account itself."""

from harness import check, collect, equal, fails, name, scenario


@scenario
async def account_lists_its_locations(account):
    if account.flavour.NAME == "sync":
        properties = await account.client.get_database_account()
    else:
        properties = await account.client._get_database_account()
    equal(len(properties.WritableLocations), 1, "write regions")
    check(properties.ReadableLocations, "no read regions")
    equal(properties.ConsistencyPolicy["defaultConsistencyLevel"], "Session", "default consistency")


@scenario
async def databases_are_created_read_listed_queried_and_deleted(account):
    wanted = name("db")
    database, properties = await account.client.create_database(wanted, return_properties=True)
    for member in ("_rid", "_self", "_etag", "_ts", "_colls", "_users"):
        check(properties.get(member), f"no {member} in {properties}")
    equal(properties["id"], wanted)
    equal((await database.read())["_rid"], properties["_rid"], "_rid")

    listed = [db["id"] async for db in account.client.list_databases()]
    check(wanted in listed, f"{wanted} is not among {listed}")
    queried = await collect(
        account.client.query_databases(
            query="SELECT * FROM root r WHERE r.id = @id", parameters=[{"name": "@id", "value": wanted}]
        )
    )
    equal([db["id"] for db in queried], [wanted])

    await fails(409, account.client.create_database(wanted))
    await account.client.delete_database(wanted)
    await fails(404, account.client.get_database_client(wanted).read())
    await fails(404, account.client.delete_database(wanted))


@scenario
async def databases_are_created_only_if_missing(account):
    wanted = name("db")
    first, created = await account.client.create_database_if_not_exists(wanted, return_properties=True)
    second, found = await account.client.create_database_if_not_exists(wanted, return_properties=True)
    equal(found["_rid"], created["_rid"], "_rid")
    equal(first.id, second.id)
    await account.client.delete_database(wanted)


@scenario
async def database_listing_comes_in_pages(account):
    names = [name("page") for _ in range(5)]
    for wanted in names:
        await account.client.create_database(wanted)
    seen, pages = [], 0
    listing = account.client.list_databases(max_item_count=2).by_page()
    async for page in listing:
        pages += 1
        seen += [db["id"] async for db in page]
    check(pages >= 3, f"{len(seen)} databases came in {pages} pages of at most 2")
    equal([db for db in seen if db in names], [db for db in seen if db.startswith("page-")])
    equal(sorted(db for db in seen if db in names), sorted(names))
    for wanted in names:
        await account.client.delete_database(wanted)


@scenario
async def database_names_may_hold_any_allowed_character(account):
    for wanted in ("with space", "中文 база", "a.b-c_d~e,f=g(h)[i]{j}@k!l$m^n+o", "per%20cent"):
        wanted = f"{wanted} {name('x')}"
        database = await account.client.create_database(wanted)
        equal((await database.read())["id"], wanted)
        await account.client.delete_database(wanted)


@scenario
async def database_names_are_limited_to_255_characters(account):
    await fails(
        400,
        account.client.create_database("n" * 256),
        mentions="Ensure to provide a unique non-empty string less than '255' characters.",
    )


@scenario
async def deleting_a_database_deletes_its_containers(account):
    database = await account.client.create_database(name("db"))
    from azure.cosmos import PartitionKey

    container = await database.create_container(id="c", partition_key=PartitionKey(path="/pk"))
    await container.create_item({"id": "1", "pk": "a"})
    await account.client.delete_database(database.id)
    again = await account.client.create_database(database.id)
    equal(await collect(again.list_containers()), [])
    await account.client.delete_database(again.id)
