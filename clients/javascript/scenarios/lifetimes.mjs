// Time to live.

import assert from "node:assert/strict";
import { fails, rows, scenario, sleep } from "../harness.mjs";

scenario("items expire by the container's default or their own ttl", async (account) => {
  const container = await account.container({ defaultTtl: 2 });
  await container.items.create({ id: "short", pk: "a" });
  await container.items.create({ id: "forever", pk: "a", ttl: -1 });
  await container.items.create({ id: "long", pk: "a", ttl: 1000 });
  await sleep(3200);
  assert.equal((await container.item("short", "a").read()).statusCode, 404);
  assert.deepEqual(await rows(container, "SELECT VALUE c.id FROM c ORDER BY c.id"), ["forever", "long"]);
  await container.items.create({ id: "short", pk: "a" });
});

scenario("a ttl means nothing without a default", async (account) => {
  const container = await account.container();
  await container.items.create({ id: "kept", pk: "a", ttl: 1 });
  await sleep(2200);
  assert.equal((await container.item("kept", "a").read()).statusCode, 200);
});

scenario("a bad ttl is refused", async (account) => {
  const container = await account.container({ defaultTtl: 100 });
  for (const ttl of [0, -10, null]) await fails(400, container.items.create({ id: `${ttl}`, pk: "a", ttl }));
});
