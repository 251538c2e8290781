// Vector and full-text search.

import assert from "node:assert/strict";
import { fails, rows, scenario } from "../harness.mjs";

const VECTORS = {
  east: [1, 0, 0],
  north: [0, 1, 0],
  up: [0, 0, 1],
  northeast: [0.7, 0.7, 0],
  west: [-1, 0, 0],
};

const vectorDefinition = (distanceFunction) => ({
  vectorEmbeddingPolicy: { vectorEmbeddings: [{ path: "/v", dataType: "float32", dimensions: 3, distanceFunction }] },
  indexingPolicy: {
    includedPaths: [{ path: "/*" }],
    excludedPaths: [{ path: "/v/*" }],
    vectorIndexes: [{ path: "/v", type: "flat" }],
  },
});

for (const distance of ["cosine", "dotproduct", "euclidean"]) {
  scenario(`the nearest vectors by ${distance} come first`, async (account) => {
    const container = await account.severalPartitions(vectorDefinition(distance));
    for (const [id, v] of Object.entries(VECTORS)) await container.items.create({ id, pk: id, v });
    const query = "SELECT TOP 2 c.id, VectorDistance(c.v, @v) AS score FROM c ORDER BY VectorDistance(c.v, @v)";
    const found = await rows(container, query, {}, { "@v": [1, 0.1, 0] });
    assert.deepEqual(found.map((row) => row.id), ["east", "northeast"]);
    assert.ok(found.every((row) => typeof row.score === "number"));
  });
}

scenario("bad vector policies are refused", async (account) => {
  await fails(400, account.container(vectorDefinition("magic")), { mentions: "invalid DistanceFunction" });
});

const TEXTS = {
  1: "The swimmer swims across the cold lake",
  2: "A runner never swims",
  3: "Mountains and lakes of the north",
  4: "Nothing to see here",
};

async function texts(account) {
  const definition = vectorDefinition("cosine");
  const container = await account.severalPartitions({
    ...definition,
    fullTextPolicy: { defaultLanguage: "en-US", fullTextPaths: [{ path: "/text", language: "en-US" }] },
    indexingPolicy: { ...definition.indexingPolicy, fullTextIndexes: [{ path: "/text" }] },
  });
  for (const [id, text] of Object.entries(TEXTS)) {
    await container.items.create({ id, pk: id, text, v: id === "1" ? [1, 0, 0] : [0, 1, 0] });
  }
  return container;
}

scenario("full text filters", async (account) => {
  const container = await texts(account);
  const found = async (condition) => (await rows(container, `SELECT VALUE c.id FROM c WHERE ${condition}`)).sort();
  assert.deepEqual(await found("FullTextContains(c.text, 'lake')"), ["1", "3"]);
  assert.deepEqual(await found("FullTextContainsAll(c.text, 'swims', 'lake')"), ["1"]);
  assert.deepEqual(await found("FullTextContainsAny(c.text, 'runner', 'mountains')"), ["2", "3"]);
});

scenario("full text and hybrid ranking", async (account) => {
  const container = await texts(account);
  const ranked = await rows(container, "SELECT TOP 3 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'swims', 'lake')");
  assert.equal(ranked[0].id, "1");
  assert.deepEqual(ranked.map((row) => row.id).sort(), ["1", "2", "3"]);
  const hybrid = await rows(
    container,
    "SELECT TOP 2 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'swims', 'lake'), VectorDistance(c.v, [1, 0, 0]))",
  );
  assert.equal(hybrid[0].id, "1");
  assert.equal(hybrid.length, 2);
});
