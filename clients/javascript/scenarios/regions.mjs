// A client with preferred regions goes on working while regions go away, drain and fail over.
//
// `clients/run` names the control port in PERI_CONTROL; without it there is nobody to take a region down.

import assert from "node:assert/strict";
import { rows, scenario, sleep, upTo } from "../harness.mjs";

const control = (process.env.PERI_CONTROL ?? "").replace(/\/$/, "");
const [writer, near, far] = ["West US", "East US", "North Europe"];
const count = 10;
// A region that answers nothing is left after this long.
const patience = { requestTimeout: 2000 };

/** Does something to a region: down, up, drain, failover. */
async function region(name, trouble, details = {}) {
  const answer = await fetch(`${control}/regions/${encodeURIComponent(name)}/${trouble}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(details),
  });
  assert.ok(answer.ok, `${trouble} ${name}: ${answer.status} ${await answer.text()}`);
}

async function troubled(name, [trouble, details], work) {
  await region(name, trouble, details);
  try {
    await work();
  } finally {
    await region(name, "up");
  }
}

/** A filled container as a client that reads in East US sees it, and elsewhere if it has to. */
async function nearClient(account) {
  const container = await account.container();
  for (const n of upTo(count)) await container.items.create({ id: `${n}`, pk: `k${n}`, n });
  const connectionPolicy = { preferredLocations: [near, far, writer], ...patience };
  const client = account.open({ connectionPolicy, consistencyLevel: "Session" });
  const same = client.database(account.database.id).container(container.id);
  await readEverything(same);
  return same;
}

async function readEverything(container) {
  for (const n of upTo(count)) assert.equal((await untilItArrives(container, n)).n, n);
  assert.deepEqual(await rows(container, "SELECT VALUE COUNT(1) FROM c"), [count]);
}

/** Regions are a few milliseconds apart. */
async function untilItArrives(container, n, wanted = () => true) {
  for (const _ of upTo(50)) {
    const { resource } = await container.item(`${n}`, `k${n}`).read();
    if (resource !== undefined && wanted(resource)) return resource;
    await sleep(20);
  }
  return assert.fail(`item ${n} has not arrived`);
}

const troubles = [
  ["a region that answers 503 is left for the next preferred one", ["down", { as: "unavailable" }]],
  ["a region that drains is left", ["drain", {}]],
];

for (const [title, trouble] of troubles) {
  scenario(`regions: ${title}`, async (account) => {
    if (!control) return;
    const container = await nearClient(account);
    await troubled(near, trouble, async () => {
      await readEverything(container);
      await container.items.upsert({ id: "0", pk: "k0", n: 0 });
    });
    await readEverything(container);
  });
}

scenario("regions: one that refuses connections is told to the application, which asks elsewhere", async (account) => {
  if (!control) return;
  const container = await nearClient(account);
  const connectionPolicy = { preferredLocations: [far, near], ...patience };
  const other = account.open({ connectionPolicy }).database(account.database.id).container(container.id);
  await readEverything(other);
  await troubled(near, ["down", { as: "refused" }], async () => {
    // This SDK tries again after a reset, and has no word for a refusal on Linux.
    await assert.rejects(readEverything(container), (error) => error.code === "ECONNREFUSED");
    await readEverything(other);
    await other.items.upsert({ id: "0", pk: "k0", n: 0 });
  });
  await readEverything(container);
});

scenario("regions: one that swallows requests is left after the client's own patience", async (account) => {
  if (!control) return;
  const container = await nearClient(account);
  await troubled(near, ["down", { as: "blackHole" }], async () => {
    assert.equal((await container.item("1", "k1").read()).resource.n, 1);
  });
  await readEverything(container);
});

scenario("regions: they fail over and writes follow", async (account) => {
  if (!control) return;
  const container = await nearClient(account);
  try {
    for (const [round, name] of [near, far, writer].entries()) {
      await region(name, "failover");
      await container.items.upsert({ id: "0", pk: "k0", n: 0, round });
      // Behind a session the SDK drops its token and takes what there is, so the item has to arrive first.
      await untilItArrives(container, 0, (item) => item.round === round);
    }
    await readEverything(container);
  } finally {
    await region(writer, "failover");
  }
});
