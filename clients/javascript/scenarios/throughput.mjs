// Offers and throughput.

import assert from "node:assert/strict";
import { fails, name, numerically, rows, scenario, upTo } from "../harness.mjs";

scenario("containers have manual throughput", async (account) => {
  const container = await account.container({ throughput: 1000 });
  const { resource } = await container.readOffer();
  assert.equal(resource.content.offerThroughput, 1000);
  assert.equal(resource.offerVersion, "V2");
  assert.equal(resource.offerResourceId, (await container.read()).resource._rid);
  assert.ok(resource._self.includes(resource.id));
  resource.content.offerThroughput = 1200;
  await account.client.offer(resource.id).replace(resource);
  assert.equal((await account.client.offer(resource.id).read()).resource.content.offerThroughput, 1200);
  const { resources } = await account.client.offers.readAll().fetchAll();
  assert.ok(resources.some((offer) => offer.id === resource.id));
  const { resources: found } = await account.client.offers.query(`SELECT * FROM root r WHERE r.id = '${resource.id}'`).fetchAll();
  assert.equal(found.length, 1);
  resource.content.offerThroughput = 450;
  await fails(400, account.client.offer(resource.id).replace(resource));
});

scenario("containers and databases have autoscale throughput", async (account) => {
  const container = await account.container({ maxThroughput: 5000, autoUpgradePolicy: { throughputPolicy: { incrementPercent: 42 } } });
  const { resource } = await container.readOffer();
  assert.equal(resource.content.offerAutopilotSettings.maxThroughput, 5000);
  assert.equal(resource.content.offerThroughput, 500);
  const { database } = await account.client.databases.create({ id: name("db"), maxThroughput: 4000 });
  assert.equal((await database.readOffer()).resource.content.offerAutopilotSettings.maxThroughput, 4000);
  await database.delete();
});

scenario("databases may have throughput", async (account) => {
  assert.ok(!(await account.database.readOffer()).resource, "a database without throughput has no offer");
  const { database } = await account.client.databases.create({ id: name("db"), throughput: 800 });
  assert.equal((await database.readOffer()).resource.content.offerThroughput, 800);
  await database.delete();
});

scenario("more throughput splits partitions and leaves everything in place", async (account) => {
  const container = await account.container({ throughput: 400 });
  for (const n of upTo(40)) await container.items.create({ id: `${n}`, pk: `k${n}`, n });
  assert.deepEqual((await rows(container, "SELECT VALUE c.n FROM c ORDER BY c.n")), upTo(40));
  const { resource } = await container.readOffer();
  resource.content.offerThroughput = 25_000;
  await account.client.offer(resource.id).replace(resource);
  while ((await account.client.offer(resource.id).read()).resource.content.isOfferReplacePending);
  // This client has to find the new ranges by itself.
  assert.equal((await container.item("7", "k7").read()).resource.n, 7);
  const operations = upTo(40).map((n) => ({ operationType: "Read", partitionKey: `k${n}`, id: `${n}` }));
  const results = await container.items.executeBulkOperations(operations);
  assert.deepEqual(results.map((result) => result.response?.resourceBody.n), upTo(40));
  // Its merged queries would ask for the range that is gone for ever (@azure/cosmos 4.10.1), so a new one asks.
  const fresh = account.open().database(account.database.id).container(container.id);
  assert.deepEqual((await rows(fresh, "SELECT VALUE c.n FROM c ORDER BY c.n")), upTo(40));
  assert.deepEqual((await rows(fresh, "SELECT VALUE c.n FROM c")).sort(numerically), upTo(40));
  assert.equal((await fresh.getFeedRanges()).length, 3);
});
