// Session tokens and consistency.

import assert from "node:assert/strict";
import { fails, rows, scenario, upTo } from "../harness.mjs";

const mine = (account, container, options) =>
  account.open(options).database(account.database.id).container(container.id);

scenario("one reads one's own writes", async (account) => {
  const container = mine(account, await account.severalPartitions(), { consistencyLevel: "Session" });
  for (const n of upTo(20)) {
    await container.items.create({ id: `${n}`, pk: `k${n}`, n: 0 });
    await container.items.upsert({ id: `${n}`, pk: `k${n}`, n });
    assert.equal((await container.item(`${n}`, `k${n}`).read()).resource.n, n);
  }
  assert.equal((await rows(container, "SELECT * FROM c")).length, 20);
});

scenario("reads do not move the token and writes do", async (account) => {
  const container = await account.container();
  const token = (answer) => answer.headers["x-ms-session-token"];
  const created = await container.items.create({ id: "1", pk: "a" });
  assert.equal(token(await container.item("1", "a").read()), token(created));
  assert.equal(token(await container.item("1", "a").read()), token(created));
  const replaced = await container.items.upsert({ id: "1", pk: "a" });
  assert.notEqual(token(replaced), token(created));
  assert.notEqual(token(await container.item("1", "a").delete()), token(replaced));
});

scenario("a token from the future is not served", async (account) => {
  const container = await account.container();
  const { headers } = await container.items.create({ id: "1", pk: "a" });
  const parts = headers["x-ms-session-token"].split("#");
  parts[1] = `${Number(parts[1]) + 1_000_000}`;
  // The SDK meets 404/1002, drops the token and asks once more; its diagnostics tell.
  const answer = await container.item("1", "a").read({ sessionToken: parts.join("#") });
  assert.equal(answer.statusCode, 200);
  const { failedAttempts } = answer.diagnostics.clientSideRequestStatistics.retryDiagnostics;
  assert.deepEqual(failedAttempts.map((attempt) => attempt.statusCode), [404]);
});

scenario("weaker consistency is served and stronger refused", async (account) => {
  const container = await account.container();
  await container.items.create({ id: "1", pk: "a" });
  const eventual = mine(account, container, { consistencyLevel: "Eventual" });
  assert.equal((await eventual.item("1", "a").read()).statusCode, 200);
  const strong = mine(account, container, { consistencyLevel: "Strong" });
  await fails(400, strong.item("1", "a").read());
});
