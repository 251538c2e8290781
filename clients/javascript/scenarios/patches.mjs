// Partial updates.

import assert from "node:assert/strict";
import { fails, scenario } from "../harness.mjs";

async function start(account, members) {
  const container = await account.container();
  await container.items.create({ id: "1", pk: "a", ...members });
  return async (body, options) => (await container.item("1", "a").patch(body, options)).resource;
}

scenario("patch adds, sets, replaces, removes and increments", async (account) => {
  const patch = await start(account, { n: 1, tags: ["x", "y"], nested: { a: 1 } });
  assert.deepEqual((await patch([{ op: "add", path: "/new", value: { k: [1] } }])).new, { k: [1] });
  assert.deepEqual((await patch([{ op: "add", path: "/tags/1", value: "mid" }])).tags, ["x", "mid", "y"]);
  assert.deepEqual((await patch([{ op: "add", path: "/tags/-", value: "end" }])).tags, ["x", "mid", "y", "end"]);
  assert.deepEqual((await patch([{ op: "set", path: "/tags/0", value: "first" }])).tags, ["first", "mid", "y", "end"]);
  assert.deepEqual((await patch([{ op: "replace", path: "/nested/a", value: null }])).nested, { a: null });
  assert.deepEqual((await patch([{ op: "remove", path: "/tags/1" }])).tags, ["first", "y", "end"]);
  assert.equal((await patch([{ op: "incr", path: "/n", value: 5 }])).n, 6);
  assert.equal((await patch([{ op: "incr", path: "/made", value: 0.5 }])).made, 0.5);
  assert.equal((await patch([{ op: "move", from: "/n", path: "/moved" }])).moved, 6);
});

scenario("patch takes a condition", async (account) => {
  const patch = await start(account, { n: 1 });
  const operations = [{ op: "incr", path: "/n", value: 1 }];
  assert.equal((await patch({ condition: "from c where c.n = 1", operations })).n, 2);
  await fails(412, patch({ condition: "from c where c.n = 1", operations }), { substatus: 1110 });
});

scenario("patch is all or nothing, and limited", async (account) => {
  const patch = await start(account, { n: 1, s: "text" });
  const set = { op: "set", path: "/n", value: 2 };
  for (const operations of [
    [],
    Array(11).fill(set),
    [set, { op: "replace", path: "/missing", value: 1 }],
    [set, { op: "incr", path: "/s", value: 1 }],
    [{ op: "set", path: "/id", value: "2" }],
    [{ op: "set", path: "/pk", value: "b" }],
    [{ op: "remove", path: "/missing" }],
    [{ op: "add", path: "/no/where", value: 1 }],
  ]) {
    await fails(400, patch(operations));
  }
  assert.equal((await patch(Array(10).fill({ op: "incr", path: "/n", value: 1 }))).n, 11);
});
