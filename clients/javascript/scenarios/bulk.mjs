// Bulk: many independent operations, grouped by physical partition.

import assert from "node:assert/strict";
import { rows, scenario, upTo } from "../harness.mjs";

const creates = (count) =>
  upTo(count).map((n) => ({
    operationType: "Create",
    partitionKey: `k${n % 40}`,
    resourceBody: { id: `${n}`, pk: `k${n % 40}`, n },
  }));

scenario("bulk operations spread over the partitions", async (account) => {
  const container = await account.severalPartitions();
  const results = await container.items.executeBulkOperations(creates(500));
  assert.equal(results.length, 500);
  assert.ok(results.every((result) => result.response?.statusCode === 201), "some creates failed");
  assert.deepEqual(await rows(container, "SELECT VALUE COUNT(1) FROM c"), [500]);
});

scenario("bulk operations succeed and fail on their own", async (account) => {
  const container = await account.severalPartitions();
  await container.items.executeBulkOperations(creates(10));
  const results = await container.items.executeBulkOperations([
    { operationType: "Create", partitionKey: "k1", resourceBody: { id: "1", pk: "k1" } },
    { operationType: "Upsert", partitionKey: "k1", resourceBody: { id: "1", pk: "k1", n: 100 } },
    { operationType: "Replace", partitionKey: "k2", id: "2", resourceBody: { id: "2", pk: "k2", n: 200 } },
    { operationType: "Patch", partitionKey: "k3", id: "3", resourceBody: { operations: [{ op: "incr", path: "/n", value: 300 }] } },
    { operationType: "Read", partitionKey: "k4", id: "4" },
    { operationType: "Delete", partitionKey: "k5", id: "5" },
    { operationType: "Delete", partitionKey: "k5", id: "none" },
  ]);
  const codes = results.map((result) => result.response?.statusCode ?? result.error?.code);
  assert.deepEqual(codes, [409, 200, 200, 200, 200, 204, 404]);
  assert.equal(results[4].response.resourceBody.n, 4);
  assert.equal((await container.item("3", "k3").read()).resource.n, 303);
});

scenario("bulk takes preconditions and hides bodies", async (account) => {
  const container = await account.severalPartitions();
  const { resource } = await container.items.create({ id: "1", pk: "k1", n: 1 });
  const results = await container.items.executeBulkOperations([
    { operationType: "Replace", partitionKey: "k1", id: "1", ifMatch: '"stale"', resourceBody: { id: "1", pk: "k1", n: 2 } },
    { operationType: "Upsert", partitionKey: "k1", ifMatch: resource._etag, resourceBody: { id: "1", pk: "k1", n: 3 } },
  ]);
  assert.deepEqual(results.map((r) => r.response?.statusCode ?? r.error?.code), [412, 200]);
  const quiet = await container.items.executeBulkOperations(
    [{ operationType: "Upsert", partitionKey: "k1", resourceBody: { id: "1", pk: "k1", n: 4 } }],
    { contentResponseOnWriteEnabled: false },
  );
  assert.ok(!quiet[0].response.resourceBody, "a write came with a body");
});

scenario("the older bulk call answers in order", async (account) => {
  const container = await account.severalPartitions();
  const created = await container.items.bulk(creates(50));
  assert.ok(created.every((r) => r.statusCode === 201));
  const mixed = await container.items.bulk(
    [
      { operationType: "Create", partitionKey: "k1", resourceBody: { id: "1", pk: "k1" } },
      { operationType: "Read", partitionKey: "k1", id: "1" },
    ],
    { continueOnError: true },
  );
  assert.deepEqual(mixed.map((r) => r.statusCode), [409, 200]);
});

scenario("bulk takes every kind of key", async (account) => {
  const container = await account.severalPartitions();
  const keys = ["text", "中文", 5, 1.5, true, null];
  const results = await container.items.executeBulkOperations([
    ...keys.map((pk, n) => ({ operationType: "Create", partitionKey: pk, resourceBody: { id: `${n}`, pk } })),
  ]);
  assert.deepEqual(results.map((r) => r.response?.statusCode), keys.map(() => 201));
  for (const [n, pk] of keys.entries()) assert.equal((await container.item(`${n}`, pk).read()).statusCode, 200);
  const nested = await account.severalPartitions({
    partitionKey: { paths: ["/a", "/b"], kind: "MultiHash", version: 2 },
  });
  const more = await nested.items.executeBulkOperations(
    upTo(20).map((n) => ({ operationType: "Create", partitionKey: [`a${n}`, n], resourceBody: { id: `${n}`, a: `a${n}`, b: n } })),
  );
  assert.ok(more.every((r) => r.response?.statusCode === 201));
});
