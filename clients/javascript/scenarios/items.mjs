// Items: the verbs, what the answers carry, preconditions, limits.

import assert from "node:assert/strict";
import { fails, own, rows, scenario } from "../harness.mjs";

scenario("items are created, read, replaced, upserted and deleted", async (account) => {
  const container = await account.container();
  const created = await container.items.create({ id: "1", pk: "a", n: 1 });
  assert.equal(created.statusCode, 201);
  assert.equal(created.etag, created.resource._etag);
  assert.ok(created.requestCharge > 0);
  for (const member of ["_rid", "_self", "_etag", "_attachments", "_ts"]) assert.ok(created.resource[member], member);
  const read = await container.item("1", "a").read();
  assert.equal(read.statusCode, 200);
  assert.deepEqual(read.resource, created.resource);
  const replaced = await container.item("1", "a").replace({ id: "1", pk: "a", n: 2 });
  assert.equal(replaced.statusCode, 200);
  assert.equal(replaced.resource._rid, created.resource._rid);
  assert.notEqual(replaced.resource._etag, created.resource._etag);
  assert.equal((await container.items.upsert({ id: "1", pk: "a", n: 3 })).statusCode, 200);
  assert.equal((await container.items.upsert({ id: "2", pk: "a" })).statusCode, 201);
  assert.equal((await container.item("1", "a").delete()).statusCode, 204);
  assert.equal((await container.item("1", "a").read()).statusCode, 404);
  await fails(404, container.item("1", "a").replace({ id: "1", pk: "a" }));
  const { resources } = await container.items.readAll().fetchAll();
  assert.deepEqual(resources.map((item) => item.id), ["2"]);
});

scenario("an id is generated when missing, and taken once", async (account) => {
  const container = await account.container();
  const { resource } = await container.items.create({ pk: "a" });
  assert.match(resource.id, /^[0-9a-f-]{36}$/);
  await fails(409, container.items.create({ id: resource.id, pk: "a" }));
  await fails(400, container.items.create({ pk: "a" }, { disableAutomaticIdGeneration: true }));
});

scenario("ids may hold any allowed character", async (account) => {
  const container = await account.container();
  const ids = ["with space", "中文😀", "a+b", "x=1&y=2", ":colon;", "quote'\"", "~`!@$^*()[]{}|"];
  for (const id of ids) await container.items.create({ id, pk: "a" });
  for (const id of ids) assert.equal((await container.item(id, "a").read()).resource?.id, id);
  for (const id of ids) await container.item(id, "a").delete();
});

scenario("values keep their type and order", async (account) => {
  const container = await account.container();
  const body = {
    id: "1", pk: "a", zebra: 1, apple: 2, safe: 9007199254740991, stamp: 1763240000123, float: 0.1, tiny: 5e-324,
    text: 'tab\t newline\n quote" back\\ é 中 😀', empty: {}, none: [], null: null, yes: true,
    deep: { a: [{ b: [[1, [2, { c: null }]]] }] },
  };
  await container.items.create(body);
  const { resource } = await container.item("1", "a").read();
  assert.deepEqual(own(resource), body);
  assert.deepEqual(Object.keys(own(resource)), Object.keys(body));
});

scenario("a replace may rename", async (account) => {
  const container = await account.container();
  const { resource } = await container.items.create({ id: "old", pk: "a" });
  const renamed = await container.item("old", "a").replace({ id: "new", pk: "a" });
  assert.equal(renamed.resource._rid, resource._rid);
  assert.equal((await container.item("old", "a").read()).statusCode, 404);
  assert.equal((await container.item("new", "a").read()).statusCode, 200);
});

scenario("a stale etag refuses the write", async (account) => {
  const container = await account.container();
  const { resource: first } = await container.items.create({ id: "1", pk: "a", n: 1 });
  const when = (condition) => ({ accessCondition: { type: "IfMatch", condition } });
  const { resource: second } = await container.item("1", "a").replace({ id: "1", pk: "a", n: 2 }, when(first._etag));
  await fails(412, container.item("1", "a").replace({ id: "1", pk: "a", n: 9 }, when(first._etag)));
  await fails(412, container.items.upsert({ id: "1", pk: "a", n: 9 }, when(first._etag)));
  await fails(412, container.item("1", "a").patch([{ op: "set", path: "/n", value: 9 }], when(first._etag)));
  await fails(412, container.item("1", "a").delete(when(first._etag)));
  await container.item("1", "a").delete(when(second._etag));
});

scenario("an unchanged item is not read again", async (account) => {
  const container = await account.container();
  const { resource } = await container.items.create({ id: "1", pk: "a" });
  const unless = { accessCondition: { type: "IfNoneMatch", condition: resource._etag } };
  const unchanged = await container.item("1", "a").read(unless);
  assert.equal(unchanged.statusCode, 304);
  await container.item("1", "a").replace({ id: "1", pk: "a", n: 1 });
  assert.equal((await container.item("1", "a").read(unless)).resource.n, 1);
});

scenario("a create may insist that nothing is there", async (account) => {
  const container = await account.container();
  const absent = { accessCondition: { type: "IfNoneMatch", condition: "*" } };
  await container.items.upsert({ id: "1", pk: "a" }, absent);
  await fails(412, container.items.upsert({ id: "1", pk: "a" }, absent));
  await fails(409, container.items.create({ id: "1", pk: "a" }, absent));
});

scenario("an item may be two megabytes and no more", async (account) => {
  const container = await account.container();
  const megabytes = 2 * 1024 * 1024;
  await container.items.create({ id: "big", pk: "a", text: "x".repeat(megabytes - 1000) });
  assert.equal((await container.item("big", "a").read()).resource.text.length, megabytes - 1000);
  await fails(413, container.items.create({ id: "bigger", pk: "a", text: "x".repeat(megabytes) }));
});

scenario("unique keys hold within a logical partition", async (account) => {
  const container = await account.container({ uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } });
  await container.items.create({ id: "1", pk: "a", email: "x" });
  await fails(409, container.items.create({ id: "2", pk: "a", email: "x" }));
  await container.items.create({ id: "2", pk: "b", email: "x" });
  await container.items.create({ id: "2", pk: "a", email: 1 });
  await fails(409, container.items.create({ id: "3", pk: "a", email: 1.0 }));
  await fails(409, container.item("2", "a").replace({ id: "2", pk: "a", email: "x" }));
  await container.item("1", "a").delete();
  await container.item("2", "a").replace({ id: "2", pk: "a", email: "x" });
  assert.equal((await rows(container, "SELECT * FROM c")).length, 2);
});

scenario("items are read all at once, in pages", async (account) => {
  const container = await account.severalPartitions();
  for (let n = 0; n < 30; n++) await container.items.create({ id: `${n}`, pk: `k${n % 9}` });
  const iterator = container.items.readAll({ maxItemCount: 4 });
  const seen = [];
  while (iterator.hasMoreResults()) seen.push(...((await iterator.fetchNext()).resources ?? []));
  assert.equal(new Set(seen.map((item) => item.id)).size, 30);
  assert.equal(seen.length, 30);
});
