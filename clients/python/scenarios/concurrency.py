"""ETags and preconditions."""

from azure.core import MatchConditions

from harness import check, equal, fails, scenario


@scenario
async def a_stale_etag_refuses_the_write(account):
    container = await account.container()
    first = await container.create_item({"id": "1", "pk": "a", "n": 1})
    second = await container.replace_item(
        item="1",
        body={"id": "1", "pk": "a", "n": 2},
        etag=first["_etag"],
        match_condition=MatchConditions.IfNotModified,
    )
    stale = {"etag": first["_etag"], "match_condition": MatchConditions.IfNotModified}
    await fails(412, container.replace_item(item="1", body={"id": "1", "pk": "a", "n": 9}, **stale))
    await fails(412, container.upsert_item({"id": "1", "pk": "a", "n": 9}, **stale))
    await fails(412, container.delete_item(item="1", partition_key="a", **stale))
    await fails(
        412,
        container.patch_item(
            item="1", partition_key="a", patch_operations=[{"op": "set", "path": "/n", "value": 9}], **stale
        ),
    )
    equal((await container.read_item(item="1", partition_key="a"))["_etag"], second["_etag"], "_etag")
    fresh = {"etag": second["_etag"], "match_condition": MatchConditions.IfNotModified}
    await container.delete_item(item="1", partition_key="a", **fresh)


@scenario
async def a_precondition_on_a_missing_item(account):
    container = await account.container()
    condition = {"etag": '"none"', "match_condition": MatchConditions.IfNotModified}
    created = await container.upsert_item({"id": "new", "pk": "a"}, **condition)
    equal(created["id"], "new")
    await fails(404, container.replace_item(item="no", body={"id": "no", "pk": "a"}, **condition))
    await fails(404, container.delete_item(item="no", partition_key="a", **condition))


@scenario
async def any_etag_matches_an_existing_item(account):
    container = await account.container()
    await container.create_item({"id": "1", "pk": "a"})
    present = {"match_condition": MatchConditions.IfPresent}
    await container.replace_item(item="1", body={"id": "1", "pk": "a", "n": 1}, **present)
    await fails(404, container.replace_item(item="2", body={"id": "2", "pk": "a"}, **present))


@scenario
async def an_unchanged_item_is_not_read_again(account):
    container = await account.container()
    created = await container.create_item({"id": "1", "pk": "a"})
    unless = {"etag": created["_etag"], "match_condition": MatchConditions.IfModified}
    # The SDK hands a 304 over as an answer without content; nothing of the item may be in it.
    unchanged = await container.read_item(item="1", partition_key="a", **unless)
    check("id" not in unchanged, f"a 304 came with a body: {unchanged}")
    await container.replace_item(item="1", body={"id": "1", "pk": "a", "n": 1})
    equal((await container.read_item(item="1", partition_key="a", **unless))["n"], 1)
