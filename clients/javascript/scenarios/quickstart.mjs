// The first thing a new user does: a connection string, a database, a container, some items.

import assert from "node:assert/strict";
import { CosmosClient } from "@azure/cosmos";
import { scenario } from "../harness.mjs";

scenario("quickstart", async (account) => {
  const client = new CosmosClient(`AccountEndpoint=${account.endpoint};AccountKey=${account.key};`);

  const { database } = await client.databases.createIfNotExists({ id: "quickstart" });
  const { container } = await database.containers.createIfNotExists({
    id: "products",
    partitionKey: { paths: ["/category"] },
  });

  await container.items.create({ id: "1", category: "surfboards", name: "Yamba", quantity: 12 });
  await container.items.upsert({ id: "2", category: "surfboards", name: "Kiama", quantity: 4 });
  await container.items.upsert({ id: "3", category: "wetsuits", name: "Cora", quantity: 7 });

  const { resource: board } = await container.item("1", "surfboards").read();
  board.quantity -= 2;
  await container.item("1", "surfboards").replace(board);
  await container.item("3", "wetsuits").delete();

  const { resources } = await container.items
    .query({
      query: "SELECT * FROM products p WHERE p.category = @category ORDER BY p.name DESC",
      parameters: [{ name: "@category", value: "surfboards" }],
    })
    .fetchAll();
  assert.deepEqual(
    resources.map((product) => [product.name, product.quantity]),
    [["Yamba", 10], ["Kiama", 4]],
  );

  await database.delete();
  client.dispose();
});
