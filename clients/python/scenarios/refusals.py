"""What the server says no to, and how."""

from azure.core.exceptions import HttpResponseError

from harness import check, equal, fails, name, scenario


@scenario
async def a_wrong_key_is_refused(account):
    wrong = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXkgd3Jvbmcga2V5IHdyb25nIGtleSE="
    try:
        client = await account.open(credential=wrong)
        await client.get_database_client(account.database.id).read()
    except HttpResponseError as error:
        equal(error.status_code, 401)
        check("Unauthorized" in str(error), f"{error}")
    else:
        check(False, "a wrong key was accepted")


@scenario
async def what_is_missing_is_said_to_be(account):
    missing = account.client.get_database_client(name("none"))
    await fails(404, missing.read())
    await fails(404, account.database.get_container_client("none").read())
    await fails(404, account.database.get_container_client("none").create_item({"id": "1", "pk": "a"}))
    container = await account.container()
    error = await fails(404, container.read_item(item="none", partition_key="a"))
    check("NotFound" in str(error), f"{error}")
    check(error.headers.get("x-ms-activity-id"), "no activity id")


@scenario
async def bad_items_are_refused(account):
    container = await account.container()
    await fails(400, container.create_item({"pk": "a"}))
    await fails(400, container.create_item({"id": "", "pk": "a"}))


@scenario
async def an_unsupported_header_value_is_refused(account):
    container = await account.container()
    await fails(400, container.create_item({"id": "1", "pk": "a"}, priority="Nonsense"))
    await container.create_item({"id": "1", "pk": "a"}, priority="Low")
