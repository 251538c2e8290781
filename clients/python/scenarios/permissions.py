"""Users, permissions and resource tokens."""

from azure.cosmos import PermissionMode

from harness import check, collect, equal, fails, name, scenario


@scenario
async def users_are_created_listed_replaced_and_deleted(account):
    user = await account.database.create_user({"id": "u1"})
    check((await user.read())["_rid"], "no _rid")
    await fails(409, account.database.create_user({"id": "u1"}))
    await account.database.upsert_user({"id": "u2"})
    await account.database.upsert_user({"id": "u2"})
    equal(sorted([u["id"] async for u in account.database.list_users()]), ["u1", "u2"])
    found = await collect(account.database.query_users("SELECT * FROM root r WHERE r.id = 'u2'"))
    equal([u["id"] for u in found], ["u2"])
    await account.database.replace_user("u2", {"id": "u3"})
    equal((await account.database.get_user_client("u3").read())["id"], "u3")
    await account.database.delete_user("u3")
    await fails(404, account.database.get_user_client("u3").read())
    await fails(404, account.database.delete_user("u3"))


async def permission(account, container, mode, **more):
    user = await account.database.create_user({"id": name("u")})
    body = {
        "id": "p",
        "permissionMode": mode,
        "resource": (await container.read())["_self"].rstrip("/"),
        **more,
    }
    return user, await user.create_permission(body)


@scenario
async def permissions_are_created_listed_replaced_and_deleted(account):
    container = await account.container()
    user, granted = await permission(account, container, PermissionMode.Read)
    check(granted.properties["_token"].startswith("type=resource"), f"{granted.properties}")
    equal((await user.get_permission("p")).permission_mode, PermissionMode.Read)
    equal([p["id"] async for p in user.list_permissions()], ["p"])
    query = f"SELECT * FROM root r WHERE r.permissionMode = '{PermissionMode.Read}'"
    found = await collect(user.query_permissions(query))
    equal([p["id"] for p in found], ["p"])
    body = {**granted.properties, "permissionMode": PermissionMode.All}
    equal((await user.replace_permission("p", body)).permission_mode, PermissionMode.All)
    equal((await user.upsert_permission({**body, "permissionMode": "Read"})).permission_mode, "Read")
    await fails(409, user.create_permission({**body, "id": "q"}))
    await user.delete_permission("p")
    await fails(404, user.get_permission("p"))


async def with_token(account, container, granted):
    """The same container, through a client that has nothing but the token."""
    link = (await container.read())["_self"]
    tokens = {link.rstrip("/").split("/")[-1]: granted.properties["_token"]}
    tokens[f"dbs/{account.database.id}/colls/{container.id}"] = granted.properties["_token"]
    client = await account.open(credential=tokens)
    return client.get_database_client(account.database.id).get_container_client(container.id)


@scenario
async def a_read_token_reads_but_does_not_write(account):
    container = await account.container()
    await container.create_item({"id": "1", "pk": "a"})
    _, granted = await permission(account, container, PermissionMode.Read)
    reader = await with_token(account, container, granted)
    equal((await reader.read_item(item="1", partition_key="a"))["id"], "1")
    equal(len(await collect(reader.query_items("SELECT * FROM c", partition_key="a"))), 1)
    await fails(403, reader.create_item({"id": "2", "pk": "a"}))
    await fails(403, reader.upsert_item({"id": "1", "pk": "a"}))
    await fails(403, reader.delete_item(item="1", partition_key="a"))
    equal(len(await collect(container.query_items("SELECT * FROM c", partition_key="a"))), 1)


@scenario
async def an_all_token_writes_to_its_container_only(account):
    container = await account.container()
    other = await account.container()
    _, granted = await permission(account, container, PermissionMode.All)
    writer = await with_token(account, container, granted)
    await writer.create_item({"id": "1", "pk": "a"})
    await writer.delete_item(item="1", partition_key="a")
    intruder = await with_token(account, other, granted)
    await fails(403, intruder.create_item({"id": "1", "pk": "a"}))


@scenario
async def a_token_may_be_bound_to_one_key(account):
    container = await account.container()
    await container.create_item({"id": "1", "pk": "mine"})
    await container.create_item({"id": "1", "pk": "yours"})
    _, granted = await permission(account, container, PermissionMode.All, resourcePartitionKey=["mine"])
    bound = await with_token(account, container, granted)
    equal((await bound.read_item(item="1", partition_key="mine"))["pk"], "mine")
    await fails(403, bound.read_item(item="1", partition_key="yours"))
    await fails(403, bound.create_item({"id": "2", "pk": "yours"}))
