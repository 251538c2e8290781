"""Containers and everything their definition carries."""

from azure.cosmos import PartitionKey

from harness import check, collect, equal, fails, headers_of, name, scenario


@scenario
async def containers_are_created_read_listed_queried_and_deleted(account):
    wanted = name("c")
    container, created = await account.database.create_container(
        id=wanted, partition_key=PartitionKey(path="/pk"), return_properties=True
    )
    equal(created["partitionKey"], {"paths": ["/pk"], "kind": "Hash", "version": 2}, "partition key")
    equal(
        created["indexingPolicy"],
        {
            "indexingMode": "consistent",
            "automatic": True,
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": '/"_etag"/?'}],
        },
        "indexing policy",
    )
    for member in ("_rid", "_self", "_etag", "_ts", "_docs", "_conflicts"):
        check(created.get(member), f"no {member} in {created}")
    equal((await container.read())["_rid"], created["_rid"], "_rid")
    equal([c["id"] async for c in account.database.list_containers()], [wanted])
    queried = await collect(
        account.database.query_containers(
            query="SELECT * FROM root r WHERE r.id = @id", parameters=[{"name": "@id", "value": wanted}]
        )
    )
    equal([c["id"] for c in queried], [wanted])
    await fails(409, account.database.create_container(id=wanted, partition_key=PartitionKey(path="/pk")))
    await account.database.delete_container(wanted)
    await fails(404, account.database.get_container_client(wanted).read())


@scenario
async def containers_are_created_only_if_missing(account):
    wanted = name("c")
    key = PartitionKey(path="/pk")
    _, created = await account.database.create_container_if_not_exists(
        id=wanted, partition_key=key, return_properties=True
    )
    _, found = await account.database.create_container_if_not_exists(
        id=wanted, partition_key=key, return_properties=True
    )
    equal(found["_rid"], created["_rid"], "_rid")


@scenario
async def containers_are_replaced_but_keep_id_and_partition_key(account):
    container = await account.container()
    await account.database.replace_container(
        container.id,
        partition_key=PartitionKey(path="/pk"),
        default_ttl=3600,
        indexing_policy={
            "indexingMode": "consistent",
            "includedPaths": [{"path": "/a/?"}],
            "excludedPaths": [{"path": "/*"}],
        },
    )
    properties = await container.read()
    equal(properties["defaultTtl"], 3600, "defaultTtl")
    equal(properties["indexingPolicy"]["includedPaths"], [{"path": "/a/?"}], "included paths")
    equal(
        properties["indexingPolicy"]["excludedPaths"],
        [{"path": "/*"}, {"path": '/"_etag"/?'}],
        "excluded paths",
    )
    await fails(
        400, account.database.replace_container(container.id, partition_key=PartitionKey(path="/other"))
    )


@scenario
async def indexing_policy_makes_the_round_trip(account):
    policy = {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": "/blob/*"}, {"path": '/"_etag"/?'}],
        "compositeIndexes": [
            [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}],
        ],
        "spatialIndexes": [{"path": "/where/*", "types": ["Point", "LineString", "Polygon", "MultiPolygon"]}],
    }
    container = await account.container(indexing_policy=policy)
    found = (await container.read())["indexingPolicy"]
    for member, value in policy.items():
        equal(found[member], value, member)


@scenario
async def kinds_of_index_are_taken_and_forgotten(account):
    kinds = [{"kind": "Hash", "dataType": "String", "precision": 3}, {"kind": "Range", "dataType": "Number"}]
    container = await account.container(indexing_policy={"includedPaths": [{"path": "/*", "indexes": kinds}]})
    equal((await container.read())["indexingPolicy"]["includedPaths"], [{"path": "/*"}], "included paths")


@scenario
async def indexing_may_be_switched_off(account):
    container = await account.container(indexing_policy={"indexingMode": "none", "automatic": False})
    policy = (await container.read())["indexingPolicy"]
    equal(policy["indexingMode"], "none", "mode")
    equal(policy.get("includedPaths", []), [], "included paths")
    equal(policy.get("excludedPaths", []), [], "excluded paths")
    await container.create_item({"id": "1", "pk": "a", "n": 1})
    equal((await container.read_item(item="1", partition_key="a"))["n"], 1)


@scenario
async def policies_are_carried_through(account):
    container = await account.container(
        unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]},
        conflict_resolution_policy={"mode": "LastWriterWins", "conflictResolutionPath": "/stamp"},
        default_ttl=-1,
        computed_properties=[{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}],
        change_feed_policy={"retentionDuration": 10},
    )
    found = await container.read()
    equal(found["uniqueKeyPolicy"]["uniqueKeys"][0]["paths"], ["/email"], "unique keys")
    equal(found["conflictResolutionPolicy"]["conflictResolutionPath"], "/stamp", "conflict path")
    equal(found["defaultTtl"], -1, "defaultTtl")
    equal(found["computedProperties"][0]["name"], "lower", "computed properties")
    equal(found["changeFeedPolicy"]["retentionDuration"], 10, "retention")


@scenario
async def container_read_reports_quota_and_index_progress(account):
    container = await account.container()
    headers = headers_of(await container.read(populate_quota_info=True))
    check("collectionSize" in headers.get("x-ms-resource-quota", ""), f"no quota in {dict(headers)}")
    check("x-ms-resource-usage" in headers, "no usage")
    equal(headers.get("x-ms-documentdb-collection-index-transformation-progress"), "100", "progress")
    check("x-ms-documentdb-collection-lazy-indexing-progress" not in headers, "lazy progress must be absent")


@scenario
async def bad_container_definitions_are_refused(account):
    async def create(expected_fragment=None, **definition):
        definition.setdefault("partition_key", PartitionKey(path="/pk"))
        call = account.database.create_container(id=name("c"), **definition)
        await fails(400, call, mentions=expected_fragment)

    await create(default_ttl=0)
    await create(default_ttl=-10)
    await create(
        "Too many partition key paths",
        partition_key=PartitionKey(path=["/a", "/b", "/c", "/d"], kind="MultiHash"),
    )
    await create(
        "Partition key paths must contain only valid characters and not contain a trailing slash or wildcard character",
        partition_key=PartitionKey(path="/pk/*"),
    )
    await create(
        "Required VALUE expression missing from computed property query",
        computed_properties=[{"name": "x", "query": "SELECT c.a FROM c"}],
    )
    await create(
        "One of the specified inputs is invalid",
        computed_properties=[{"name": "x", "query": "SELECT VALUE c.a FROM c WHERE c.a > 1"}],
    )
    await create(offer_throughput=399)
    await create(offer_throughput=450)


@scenario
async def a_recreated_container_is_found_again(account):
    first = await account.container()
    await first.create_item({"id": "1", "pk": "a"})
    old = (await first.read())["_rid"]
    other = await account.open()
    await other.get_database_client(account.database.id).delete_container(first.id)
    second = await other.get_database_client(account.database.id).create_container(
        id=first.id, partition_key=PartitionKey(path="/other")
    )
    check((await second.read())["_rid"] != old, "the new container has the old one's _rid")
    # The first client still believes in the old container: it learns, and retries by itself.
    await first.create_item({"id": "2", "other": "b"})
    equal(ids_of(await collect(second.query_items("SELECT * FROM c"))), ["2"])


def ids_of(items):
    return sorted(item["id"] for item in items)


@scenario
async def server_side_scripts_are_resources_and_running_one_is_refused_by_name(account):
    scripts = (await account.container()).scripts
    script = {"id": "s", "body": "function () {}"}
    trigger = {**script, "triggerType": "pre", "triggerOperation": "all"}
    for kind, body in (("stored_procedure", script), ("user_defined_function", script), ("trigger", trigger)):
        created = await getattr(scripts, f"create_{kind}")(body)
        equal({name: created[name] for name in body}, body)
        equal((await getattr(scripts, f"get_{kind}")("s"))["_rid"], created["_rid"])
        equal(ids_of(await collect(getattr(scripts, f"list_{kind}s")())), ["s"])
        query = {"query": "SELECT * FROM r WHERE r.id = @id", "parameters": [{"name": "@id", "value": "s"}]}
        equal(ids_of(await collect(getattr(scripts, f"query_{kind}s")(**query))), ["s"])
        replaced = await getattr(scripts, f"replace_{kind}")("s", {**body, "body": "function () { return 1 }"})
        equal(replaced["body"], "function () { return 1 }")
        await fails(409, getattr(scripts, f"create_{kind}")(body))
    await fails(400, scripts.execute_stored_procedure("s", partition_key="a"), mentions="stored procedures")
    for kind in ("stored_procedure", "user_defined_function", "trigger"):
        await getattr(scripts, f"delete_{kind}")("s")
        await fails(404, getattr(scripts, f"get_{kind}")("s"))
