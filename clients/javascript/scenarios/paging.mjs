// Pages and continuation tokens.

import assert from "node:assert/strict";
import { fails, numerically, scenario, upTo } from "../harness.mjs";

async function filled(account, count = 50, keys = 17) {
  const container = await account.severalPartitions();
  for (const n of upTo(count)) await container.items.create({ id: `${n}`.padStart(3, "0"), pk: `k${n % keys}`, n });
  return container;
}

/** Runs a query to its end with a new iterator for every page, each resuming from the last one's token. */
async function resumed(container, query, options) {
  const seen = [];
  let continuationToken;
  for (let pages = 0; pages < 200; pages++) {
    const iterator = container.items.query(query, { ...options, ...(continuationToken && { continuationToken }) });
    const answer = await iterator.fetchNext();
    seen.push(...(answer.resources ?? []));
    continuationToken = answer.continuationToken;
    if (!continuationToken) return seen;
  }
  assert.fail("the continuation never ends");
}

scenario("pages of one partition resume", async (account) => {
  const container = await filled(account, 30, 1);
  const seen = await resumed(container, "SELECT VALUE c.n FROM c", { partitionKey: "k0", maxItemCount: 4 });
  assert.deepEqual(seen.sort(numerically), upTo(30));
  const ordered = await resumed(container, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", { partitionKey: "k0", maxItemCount: 4 });
  assert.deepEqual(ordered, upTo(30).reverse());
});

scenario("pages across partitions resume", async (account) => {
  const container = await filled(account);
  const seen = await resumed(container, "SELECT VALUE c.n FROM c", { maxItemCount: 6 });
  assert.deepEqual(seen.sort(numerically), upTo(50));
});

scenario("ordered pages across partitions resume", async (account) => {
  const container = await filled(account);
  const options = { maxItemCount: 6, enableQueryControl: true };
  assert.deepEqual(await resumed(container, "SELECT VALUE c.n FROM c ORDER BY c.n", options), upTo(50));
});

scenario("an iterator yields pages", async (account) => {
  const container = await filled(account);
  const seen = [];
  for await (const { resources, requestCharge } of container.items.query("SELECT * FROM c", { maxItemCount: 5 }).getAsyncIterator()) {
    assert.ok((resources?.length ?? 0) <= 5 && requestCharge >= 0);
    seen.push(...(resources ?? []));
  }
  assert.equal(seen.length, 50);
});

scenario("a bad continuation is refused", async (account) => {
  const container = await filled(account, 3, 1);
  const iterator = container.items.query("SELECT * FROM c", { partitionKey: "k0", maxItemCount: 1, continuationToken: "no-such-token" });
  await fails(400, iterator.fetchNext(), { mentions: "Invalid Continuation Token" });
});
