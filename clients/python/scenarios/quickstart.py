"""The first thing a new user does, on each SDK as it is: no adapter in between."""

from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncCosmosClient

from harness import equal, scenario

PRODUCTS = [
    {"id": "item1", "productName": "Widget", "productModel": "Model 1"},
    {"id": "item2", "productName": "Widget", "productModel": "Model 2"},
    {"id": "item3", "productName": "Gadget", "productModel": "Model 3"},
]
WIDGETS = "SELECT * FROM products p WHERE p.productName = @name ORDER BY p.productModel"


@scenario
async def quickstart(account):
    connection_string = f"AccountEndpoint={account.endpoint};AccountKey={account.key};"
    if account.flavour.NAME == "sync":
        found = synchronous(connection_string)
    else:
        found = await asynchronous(connection_string)
    equal(found, ["Model 1", "Model 2"])


def synchronous(connection_string):
    client = CosmosClient.from_connection_string(connection_string)
    database = client.create_database_if_not_exists(id="quickstart-sync")
    container = database.create_container_if_not_exists(
        id="products", partition_key=PartitionKey(path="/productName"), offer_throughput=400
    )
    for product in PRODUCTS:
        container.upsert_item(product)

    item = container.read_item(item="item1", partition_key="Widget")
    item["productModel"] = "Model 1"
    container.replace_item(item=item, body=item)
    container.delete_item(item="item3", partition_key="Gadget")

    found = container.query_items(
        query=WIDGETS,
        parameters=[{"name": "@name", "value": "Widget"}],
        enable_cross_partition_query=True,
    )
    models = [item["productModel"] for item in found]
    client.delete_database("quickstart-sync")
    return models


async def asynchronous(connection_string):
    async with AsyncCosmosClient.from_connection_string(connection_string) as client:
        database = await client.create_database_if_not_exists(id="quickstart-aio")
        container = await database.create_container_if_not_exists(
            id="products", partition_key=PartitionKey(path="/productName"), offer_throughput=400
        )
        for product in PRODUCTS:
            await container.upsert_item(product)

        item = await container.read_item(item="item1", partition_key="Widget")
        item["productModel"] = "Model 1"
        await container.replace_item(item=item, body=item)
        await container.delete_item(item="item3", partition_key="Gadget")

        found = container.query_items(query=WIDGETS, parameters=[{"name": "@name", "value": "Widget"}])
        models = [item["productModel"] async for item in found]
        await client.delete_database("quickstart-aio")
        return models
