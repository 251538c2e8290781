// Cross-partition queries whose rows the SDK merges, by the plan the server gives.

import assert from "node:assert/strict";
import { numerically, rows, scenario, upTo } from "../harness.mjs";

const COUNT = 90;
const WORDS = ["alpha", "beta", "gamma", "delta"];

async function filled(account) {
  const composite = [{ path: "/team", order: "descending" }, { path: "/n", order: "ascending" }];
  const container = await account.severalPartitions({ indexingPolicy: { compositeIndexes: [composite] } });
  await container.items.executeBulkOperations(
    upTo(COUNT).map((number) => ({
      operationType: "Create",
      partitionKey: `k${number % 30}`,
      resourceBody: {
        id: `${number}`.padStart(3, "0"),
        pk: `k${number % 30}`,
        n: (number * 37) % COUNT,
        team: number % 3,
        word: WORDS[number % 4],
        odd: number % 2 === 1,
      },
    })),
  );
  return container;
}

scenario("ORDER BY across partitions", async (account) => {
  const container = await filled(account);
  assert.deepEqual(await rows(container, "SELECT VALUE c.n FROM c ORDER BY c.n"), upTo(COUNT));
  assert.deepEqual(await rows(container, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", { maxItemCount: 7 }), upTo(COUNT).reverse());
  assert.deepEqual(await rows(container, "SELECT VALUE c.n FROM c ORDER BY c.n", { forceQueryPlan: true }), upTo(COUNT));
  const items = await rows(container, "SELECT * FROM c WHERE c.n >= 80 ORDER BY c.n");
  assert.deepEqual(items.map((item) => item.n), upTo(COUNT).slice(80));
  const pairs = await rows(container, "SELECT c.team, c.n FROM c ORDER BY c.team DESC, c.n ASC");
  assert.deepEqual(pairs, [...pairs].sort((l, r) => r.team - l.team || l.n - r.n));
  const parallel = { maxDegreeOfParallelism: -1, bufferItems: true, maxItemCount: 3 };
  assert.deepEqual(await rows(container, "SELECT VALUE c.n FROM c ORDER BY c.n", parallel), upTo(COUNT));
  const words = await rows(container, "SELECT VALUE c.word FROM c ORDER BY c.word");
  assert.deepEqual(words, [...words].sort());
  assert.equal(words.length, COUNT);
});

scenario("TOP, OFFSET and LIMIT across partitions", async (account) => {
  const container = await filled(account);
  assert.deepEqual(await rows(container, "SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n"), [0, 1, 2, 3, 4]);
  assert.equal((await rows(container, "SELECT TOP 5 * FROM c")).length, 5);
  assert.deepEqual(await rows(container, "SELECT TOP 0 * FROM c"), []);
  assert.deepEqual(await rows(container, "SELECT TOP @n VALUE c.n FROM c ORDER BY c.n DESC", {}, { "@n": 2 }), [89, 88]);
  assert.deepEqual(await rows(container, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3"), [10, 11, 12]);
  assert.deepEqual(await rows(container, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 88 LIMIT 30"), [88, 89]);
  assert.equal((await rows(container, "SELECT * FROM c OFFSET 80 LIMIT 30")).length, 10);
});

scenario("DISTINCT across partitions", async (account) => {
  const container = await filled(account);
  assert.deepEqual((await rows(container, "SELECT DISTINCT VALUE c.word FROM c")).sort(), [...WORDS].sort());
  assert.deepEqual(await rows(container, "SELECT DISTINCT VALUE c.word FROM c ORDER BY c.word DESC"), [...WORDS].sort().reverse());
  assert.equal((await rows(container, "SELECT DISTINCT c.team, c.odd FROM c")).length, 6);
  assert.deepEqual(await rows(container, "SELECT DISTINCT c.nothing FROM c"), [{}]);
});

scenario("aggregates across partitions", async (account) => {
  const container = await filled(account);
  for (const [query, expected] of [
    ["SELECT VALUE COUNT(1) FROM c", [COUNT]],
    ["SELECT VALUE COUNT(1) FROM c WHERE c.odd", [45]],
    ["SELECT VALUE SUM(c.n) FROM c", [(COUNT * (COUNT - 1)) / 2]],
    ["SELECT VALUE AVG(c.n) FROM c", [(COUNT - 1) / 2]],
    ["SELECT VALUE MIN(c.n) FROM c", [0]],
    ["SELECT VALUE MAX(c.n) FROM c", [COUNT - 1]],
    ["SELECT VALUE MAX(c.word) FROM c", ["gamma"]],
    ["SELECT VALUE MIN(c.nothing) FROM c", []],
    ["SELECT VALUE COUNTIF(c.odd) FROM c", [45]],
    ["SELECT COUNT(1) AS n, AVG(c.n) AS mean, MIN(c.word) AS first FROM c", [{ n: COUNT, mean: (COUNT - 1) / 2, first: "alpha" }]],
    ["SELECT COUNT(1) FROM c", [{ $1: COUNT }]],
  ]) {
    assert.deepEqual(await rows(container, query), expected, query);
  }
  const set = await rows(container, "SELECT VALUE MAKESET(c.word) FROM c");
  assert.deepEqual(set[0].sort(), [...WORDS].sort());
  const list = await rows(container, "SELECT VALUE MAKELIST(c.n) FROM c");
  assert.deepEqual(list[0].sort(numerically), upTo(COUNT));
});

scenario("GROUP BY across partitions", async (account) => {
  const container = await filled(account);
  const by = (member) => (left, right) => (left[member] < right[member] ? -1 : 1);
  assert.deepEqual((await rows(container, "SELECT c.word, COUNT(1) AS n FROM c GROUP BY c.word")).sort(by("word")), [
    { word: "alpha", n: 23 },
    { word: "beta", n: 23 },
    { word: "delta", n: 22 },
    { word: "gamma", n: 22 },
  ]);
  const groups = await rows(container, "SELECT c.team, SUM(c.n) AS sum, AVG(c.n) AS mean, MIN(c.n) AS low, MAX(c.n) AS high FROM c GROUP BY c.team");
  assert.equal(groups.length, 3);
  assert.equal(groups.reduce((sum, team) => sum + team.sum, 0), (COUNT * (COUNT - 1)) / 2);
  assert.ok(groups.every((team) => Math.abs(team.mean - team.sum / 30) < 1e-9 && team.low <= team.high));
  assert.equal((await rows(container, "SELECT c.team, c.odd, COUNT(1) AS n FROM c GROUP BY c.team, c.odd")).length, 6);
  assert.deepEqual((await rows(container, "SELECT VALUE COUNT(1) FROM c GROUP BY c.word")).sort(), [22, 22, 23, 23]);
  assert.deepEqual((await rows(container, "SELECT VALUE c.word FROM c GROUP BY c.word")).sort(), [...WORDS].sort());
  const first = await rows(container, "SELECT UPPER(c.word) AS w, COUNT(1) AS n FROM c GROUP BY UPPER(c.word)");
  assert.deepEqual(first.map((row) => row.w).sort(), WORDS.map((word) => word.toUpperCase()).sort());
  const undefinedKeys = await rows(container, "SELECT c.nothing, COUNT(1) AS n FROM c GROUP BY c.nothing");
  assert.deepEqual(undefinedKeys, [{ n: COUNT }]);
  assert.equal((await rows(container, "SELECT TOP 2 c.word, COUNT(1) AS n FROM c GROUP BY c.word")).length, 2);
});

scenario("the query plan has the shape the SDK expects", async (account) => {
  const container = await account.severalPartitions();
  const { result } = await container.getQueryPlan("SELECT * FROM c ORDER BY c.n");
  assert.equal(result.partitionedQueryExecutionInfoVersion, 2);
  assert.deepEqual(result.queryInfo.orderBy, ["Ascending"]);
  assert.deepEqual(result.queryInfo.orderByExpressions, ["c.n"]);
  assert.deepEqual(result.queryInfo.aggregates, []);
  assert.deepEqual(result.queryRanges, [{ min: "", max: "FF", isMinInclusive: true, isMaxInclusive: false }]);
});
