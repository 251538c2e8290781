// The change feed, latest version and all versions and deletes.

import assert from "node:assert/strict";
import { ChangeFeedMode, ChangeFeedPolicy, ChangeFeedRetentionTimeSpan, ChangeFeedStartFrom } from "@azure/cosmos";
import { numerically, scenario, sleep, upTo } from "../harness.mjs";

/** Reads until every range has said that there is nothing new. */
async function drain(iterator) {
  const changes = [];
  let continuation;
  let quiet = 0;
  for (let calls = 0; calls < 200 && quiet < 20; calls++) {
    const answer = await iterator.readNext();
    continuation = answer.continuationToken ?? continuation;
    if (answer.statusCode === 304) {
      // 304 for a whole container means that one pass over all ranges found nothing.
      quiet = 20;
    } else {
      changes.push(...answer.result);
    }
  }
  return { changes, continuation };
}

const feed = (container, changeFeedStartFrom, more = {}) =>
  container.items.getChangeFeedIterator({ changeFeedStartFrom, ...more });

async function filled(account, count = 30, definition = {}) {
  const container = await account.severalPartitions(definition);
  for (const n of upTo(count)) await container.items.create({ id: `${n}`, pk: `k${n % 7}` });
  return container;
}

scenario("the feed starts at the beginning and resumes", async (account) => {
  const container = await filled(account);
  const first = await drain(feed(container, ChangeFeedStartFrom.Beginning(), { maxItemCount: 4 }));
  assert.deepEqual(first.changes.map((c) => Number(c.id)).sort(numerically), upTo(30));
  await container.items.upsert({ id: "3", pk: "k3", n: 1 });
  await container.items.create({ id: "new", pk: "k1" });
  const second = await drain(feed(container, ChangeFeedStartFrom.Continuation(first.continuation)));
  assert.deepEqual(second.changes.map((c) => c.id).sort(), ["3", "new"]);
  const third = await drain(feed(container, ChangeFeedStartFrom.Continuation(second.continuation)));
  assert.deepEqual(third.changes, []);
});

scenario("the feed starts now", async (account) => {
  const container = await filled(account, 5);
  const iterator = feed(container, ChangeFeedStartFrom.Now());
  assert.deepEqual((await drain(iterator)).changes, []);
  await container.items.create({ id: "after", pk: "k1" });
  assert.deepEqual((await drain(iterator)).changes.map((c) => c.id), ["after"]);
});

scenario("the feed starts at a time", async (account) => {
  const container = await filled(account, 5);
  await sleep(2100);
  const start = new Date();
  await sleep(1100);
  await container.items.create({ id: "after", pk: "k1" });
  assert.deepEqual((await drain(feed(container, ChangeFeedStartFrom.Time(start)))).changes.map((c) => c.id), ["after"]);
});

scenario("the feed of one key and of each range", async (account) => {
  const container = await filled(account);
  const one = await drain(feed(container, ChangeFeedStartFrom.Beginning("k3")));
  assert.deepEqual(one.changes.map((c) => Number(c.id)).sort(numerically), [3, 10, 17, 24]);
  const seen = [];
  for (const range of await container.getFeedRanges()) {
    seen.push(...(await drain(feed(container, ChangeFeedStartFrom.Beginning(range)))).changes.map((c) => Number(c.id)));
  }
  assert.deepEqual(seen.sort(numerically), upTo(30));
});

scenario("all versions and deletes", async (account) => {
  const changeFeedPolicy = new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(5));
  const container = await filled(account, 0, { changeFeedPolicy });
  const mode = { changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes };
  const iterator = feed(container, ChangeFeedStartFrom.Now(), mode);
  const start = await drain(iterator);
  assert.deepEqual(start.changes, []);
  await container.items.create({ id: "1", pk: "a", n: 1 });
  await container.items.upsert({ id: "1", pk: "a", n: 2 });
  await container.item("1", "a").replace({ id: "1", pk: "a", n: 3 });
  await container.item("1", "a").delete();
  const { changes } = await drain(feed(container, ChangeFeedStartFrom.Continuation(start.continuation), mode));
  assert.deepEqual(changes.map((c) => c.metadata.operationType), ["create", "replace", "replace", "delete"]);
  assert.deepEqual(changes.slice(0, 3).map((c) => c.current.n), [1, 2, 3]);
  assert.equal(changes[3].metadata.id ?? changes[3].previous?.id, "1");
});

scenario("the older change feed iterator works", async (account) => {
  const container = await filled(account, 7);
  const iterator = container.items.changeFeed("k3", { startFromBeginning: true });
  const { result } = await iterator.fetchNext();
  assert.deepEqual(result.map((item) => item.id), ["3"]);
  await container.items.create({ id: "more", pk: "k3" });
  assert.deepEqual((await iterator.fetchNext()).result.map((item) => item.id), ["more"]);
});
