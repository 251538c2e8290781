// More than the throughput allows. `clients/run` also runs this where it is enforced (PERI_RU=enforce).

import assert from "node:assert/strict";
import { fails, rows, scenario, upTo } from "../harness.mjs";

const enforced = process.env.PERI_RU === "enforce";
// About 6 RU each: three seconds' worth of 400 RU/s.
const count = 200;

scenario("throttling of a large load is waited out by the SDK", async (account) => {
  const container = await account.container({ throughput: 400 });
  const left = upTo(count);
  const writer = async () => {
    for (let n = left.pop(); n !== undefined; n = left.pop()) {
      await container.items.upsert({ id: `${n}`, pk: `k${n}`, n });
    }
  };
  await Promise.all(upTo(20).map(writer));
  assert.deepEqual(await rows(container, "SELECT VALUE COUNT(1) FROM c"), [count]);
});

scenario("throttling of a bulk load is waited out by the SDK", async (account) => {
  const container = await account.container({ throughput: 400 });
  const operations = upTo(count).map((n) => ({
    operationType: "Create",
    partitionKey: `k${n}`,
    resourceBody: { id: `${n}`, pk: `k${n}`, n },
  }));
  const results = await container.items.executeBulkOperations(operations);
  const codes = results.map((result) => result.response?.statusCode ?? result.error?.code);
  assert.deepEqual(codes, operations.map(() => 201));
});

scenario("throttling tells the impatient how long to wait", async (account) => {
  if (!enforced) return;
  const container = await account.container({ throughput: 400 });
  const impatient = account.open({ connectionPolicy: { retryOptions: { maxRetryAttemptCount: 0 } } });
  const same = impatient.database(account.database.id).container(container.id);
  const operations = upTo(100).map((n) => ({ operationType: "Upsert", resourceBody: { id: `${n}`, pk: "a" } }));
  const { headers } = await same.items.batch(operations, "a");
  const spent = Number(headers["x-ms-request-charge"]);
  assert.ok(spent > 500, `a hundred writes cost ${spent} RU`);
  const error = await fails(429, same.item("1", "a").read());
  assert.equal(error.substatus, 3200);
  assert.ok(error.retryAfterInMs > 0 && error.retryAfterInMs < 2000, `${error.retryAfterInMs} ms`);
  // The container's other client waits by itself.
  assert.equal((await container.item("1", "a").read()).resource.id, "1");
});
