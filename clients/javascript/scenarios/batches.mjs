// Transactional batches.

import assert from "node:assert/strict";
import { rows, scenario, upTo } from "../harness.mjs";

const item = (id, more = {}) => ({ id: `${id}`, pk: "a", ...more });
const create = (id, more) => ({ operationType: "Create", resourceBody: item(id, more) });

scenario("a batch of every operation succeeds", async (account) => {
  const container = await account.container();
  for (const n of [1, 2, 3, 4]) await container.items.create(item(n, { n }));
  const { result, code } = await container.items.batch(
    [
      create(10),
      { operationType: "Upsert", resourceBody: item(1, { n: 100 }) },
      { operationType: "Replace", id: "2", resourceBody: item(2, { n: 200 }) },
      { operationType: "Patch", id: "3", resourceBody: { operations: [{ op: "incr", path: "/n", value: 30 }] } },
      { operationType: "Read", id: "3" },
      { operationType: "Delete", id: "4" },
    ],
    "a",
  );
  assert.equal(code, 200);
  assert.deepEqual(result.map((r) => r.statusCode), [201, 200, 200, 200, 200, 204]);
  assert.deepEqual(result.slice(1, 5).map((r) => r.resourceBody.n), [100, 200, 33, 33]);
  assert.equal((await rows(container, "SELECT * FROM c")).length, 4);
});

scenario("a failed batch leaves nothing behind", async (account) => {
  const container = await account.container();
  const { resource } = await container.items.create(item(1, { n: 1 }));
  await container.items.upsert(item(1, { n: 2 }));
  const stale = { ifMatch: resource._etag };
  for (const [operations, expected] of [
    [[create(9), create(9)], [424, 409]],
    [[create(9), { operationType: "Create", resourceBody: { id: "8", pk: "other" } }], [424, 400]],
    [[{ operationType: "Read", id: "none" }, create(9)], [404, 424]],
    [[create(9), { operationType: "Delete", id: "none" }, create(8)], [424, 404, 424]],
    [[create(9), { operationType: "Replace", id: "1", resourceBody: item(1), ...stale }], [424, 412]],
    [[{ operationType: "Upsert", resourceBody: item(1), ...stale }, create(9)], [412, 424]],
  ]) {
    const { result, code } = await container.items.batch(operations, "a");
    assert.equal(code, 207);
    assert.deepEqual(result.map((r) => r.statusCode), expected);
  }
  assert.deepEqual(await rows(container, "SELECT c.id, c.n FROM c"), [{ id: "1", n: 2 }]);
});

scenario("batches are limited to a hundred operations", async (account) => {
  const container = await account.container();
  const { result } = await container.items.batch(upTo(100).map((n) => create(n)), "a");
  assert.ok(result.every((r) => r.statusCode === 201));
  // The SDK itself counts.
  await assert.rejects(container.items.batch(upTo(101).map((n) => create(n)), "a"), /more than 100 operations/);
});

scenario("batches work on hierarchical keys", async (account) => {
  const container = await account.severalPartitions({
    partitionKey: { paths: ["/a", "/b"], kind: "MultiHash", version: 2 },
  });
  const operations = upTo(3).map((n) => ({ operationType: "Create", resourceBody: { id: `${n}`, a: "x", b: "y" } }));
  const { result } = await container.items.batch(operations, ["x", "y"]);
  assert.deepEqual(result.map((r) => r.statusCode), [201, 201, 201]);
});

scenario("a batch may answer without bodies", async (account) => {
  const container = await account.container();
  const { result } = await container.items.batch([create(1), { operationType: "Read", id: "1" }], "a", {
    contentResponseOnWriteEnabled: false,
  });
  assert.deepEqual(result.map((r) => r.statusCode), [201, 200]);
  assert.ok(!result[0].resourceBody, "a write came with a body");
  assert.equal(result[1].resourceBody.id, "1");
});
