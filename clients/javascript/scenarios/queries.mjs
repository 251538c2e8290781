// Queries that need no merging, and what they report.

import assert from "node:assert/strict";
import { fails, numerically, rows, scenario, upTo } from "../harness.mjs";

const FAMILIES = [
  { id: "1", pk: "a", n: 5, name: "Ann", tags: ["x", "y"], address: { city: "Oslo" }, children: [{ n: "A", age: 3 }, { n: "B", age: 9 }] },
  { id: "2", pk: "a", n: 2, name: "bob", tags: [], address: { city: "Rome" }, children: [{ n: "C", age: 12 }] },
  { id: "3", pk: "a", n: 9, name: "Cid", tags: ["y"], address: { city: "Oslo" } },
  { id: "4", pk: "a", n: null, name: "Dee" },
];

async function families(account) {
  const container = await account.severalPartitions();
  for (const family of FAMILIES) await container.items.create(family);
  return container;
}

const IN_ONE_PARTITION = [
  ["SELECT VALUE c.id FROM c WHERE c.n > 2 ORDER BY c.n", ["1", "3"]],
  ["SELECT VALUE c.id FROM c WHERE c.n >= @low ORDER BY c.n DESC", ["3", "1"], { "@low": 5 }],
  ["SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(@ids, c.id) ORDER BY c.id", ["1", "4"], { "@ids": ["1", "4"] }],
  ["SELECT VALUE c.id FROM c WHERE c.address = @where", ["2"], { "@where": { city: "Rome" } }],
  ["SELECT VALUE c.id FROM c WHERE c.n BETWEEN 2 AND 5 ORDER BY c.id", ["1", "2"]],
  ["SELECT VALUE c.id FROM c WHERE c.name LIKE '_i%'", ["3"]],
  ["SELECT c.id, c.address.city FROM c WHERE c.id = '2'", [{ id: "2", city: "Rome" }]],
  ["SELECT TOP 2 VALUE c.id FROM c ORDER BY c.id DESC", ["4", "3"]],
  ["SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 1 LIMIT 2", ["2", "3"]],
  ["SELECT DISTINCT VALUE c.address.city FROM c ORDER BY c.address.city", ["Oslo", "Rome"]],
  ["SELECT c.id, k.n FROM c JOIN k IN c.children WHERE k.age > 5 ORDER BY c.id", [{ id: "1", n: "B" }, { id: "2", n: "C" }]],
  ["SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE k FROM k IN c.children WHERE k.age < 5)", ["1"]],
  ["SELECT VALUE COUNT(1) FROM c", [4]],
  ["SELECT VALUE SUM(c.n) FROM c WHERE IS_NUMBER(c.n)", [16]],
  ["SELECT VALUE {low: MIN(c.n), high: MAX(c.n)} FROM c WHERE IS_NUMBER(c.n)", [{ low: 2, high: 9 }]],
  ["SELECT VALUE 1 + 1", [2]],
];

scenario("queries in one partition", async (account) => {
  const container = await families(account);
  for (const [query, expected, parameters] of IN_ONE_PARTITION) {
    const found = await rows(container, query, { partitionKey: "a" }, parameters);
    assert.deepEqual(found, expected, query);
  }
});

scenario("filters and projections across partitions", async (account) => {
  const container = await account.severalPartitions();
  for (const n of upTo(40)) await container.items.create({ id: `${n}`, pk: `k${n % 13}`, n, list: [n, -n] });
  const sorted = async (query) => (await rows(container, query)).sort(numerically);
  assert.equal((await rows(container, "SELECT * FROM c")).length, 40);
  assert.deepEqual(await sorted("SELECT VALUE c.n FROM c WHERE c.n < 3"), [0, 1, 2]);
  assert.deepEqual(await sorted("SELECT VALUE x FROM c JOIN x IN c.list WHERE c.n = 5"), [-5, 5]);
  assert.deepEqual(await sorted("SELECT VALUE c.n FROM c WHERE c.pk = 'k3'"), [3, 16, 29]);
  assert.deepEqual(await sorted("SELECT VALUE c.n FROM c WHERE c.pk IN ('k3', 'k4') AND c.n < 10"), [3, 4]);
});

scenario("queries report their metrics", async (account) => {
  const container = await families(account);
  const answer = await container.items
    .query("SELECT * FROM c WHERE c.n > 1", { partitionKey: "a", populateQueryMetrics: true, populateIndexMetrics: true })
    .fetchAll();
  assert.equal(answer.resources.length, 3);
  assert.ok(answer.requestCharge > 0);
  assert.ok(JSON.stringify(answer.queryMetrics).includes('"outputDocumentCount":3'), JSON.stringify(answer.queryMetrics));
  assert.ok(answer.indexMetrics?.includes("/n/?"), `index metrics: ${answer.indexMetrics}`);
});

scenario("paged and whole runs cost about the same", async (account) => {
  const container = await account.severalPartitions();
  for (const n of upTo(60)) await container.items.create({ id: `${n}`, pk: `k${n}`, n });
  const options = { maxItemCount: 5 };
  const whole = (await container.items.query("SELECT * FROM c ORDER BY c.n", options).fetchAll()).requestCharge;
  let paged = 0;
  const iterator = container.items.query("SELECT * FROM c ORDER BY c.n", options);
  while (iterator.hasMoreResults()) paged += (await iterator.fetchNext()).requestCharge;
  assert.ok(Math.abs(paged - whole) <= whole * 0.1, `${paged} RU in pages, ${whole} RU at once`);
});

scenario("computed properties are usable but not shown", async (account) => {
  const container = await account.severalPartitions({
    computedProperties: [{ name: "lower", query: "SELECT VALUE LOWER(c.name) FROM c" }],
  });
  for (const [n, text] of ["ANN", "Bob", "aNN"].entries()) await container.items.create({ id: `${n}`, pk: `k${n}`, name: text });
  const found = await rows(container, "SELECT * FROM c WHERE c.lower = 'ann'");
  assert.deepEqual(found.map((row) => row.id).sort(), ["0", "2"]);
  assert.ok(found.every((row) => !("lower" in row)));
  assert.deepEqual(await rows(container, "SELECT VALUE c.lower FROM c ORDER BY c.lower DESC"), ["bob", "ann", "ann"]);
  const grouped = await rows(container, "SELECT c.lower, COUNT(1) AS n FROM c GROUP BY c.lower");
  assert.deepEqual(grouped.sort((l, r) => l.n - r.n), [{ lower: "bob", n: 1 }, { lower: "ann", n: 2 }]);
});

scenario("bad queries are refused", async (account) => {
  const container = await account.severalPartitions();
  for (const query of ["SELECT * frm c", "SELECT * from ", "SELECT NOFUNCTION(c.a) FROM c", "SELECT x.a FROM c", "SELECT * FROM c WHERE c.a IS NULL"]) {
    await fails(400, rows(container, query));
    await fails(400, rows(container, query, { partitionKey: "a" }));
  }
});
