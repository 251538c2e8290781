// The account, its databases and its containers.

import assert from "node:assert/strict";
import { fails, name, rows, scenario } from "../harness.mjs";

scenario("the account lists its locations", async ({ client }) => {
  const { resource } = await client.getDatabaseAccount();
  assert.equal(resource.writableLocations.length, 1);
  assert.ok(resource.readableLocations.length >= 1);
  assert.equal(resource.consistencyPolicy, "Session");
  assert.ok(await client.getWriteEndpoint());
  assert.ok(await client.getReadEndpoint());
});

scenario("databases are created, read, listed, queried and deleted", async ({ client }) => {
  const id = name("db");
  const created = await client.databases.create({ id });
  assert.equal(created.statusCode, 201);
  for (const member of ["_rid", "_self", "_etag", "_ts"]) assert.ok(created.resource[member], member);
  assert.equal((await client.database(id).read()).resource._rid, created.resource._rid);
  const { resources: all } = await client.databases.readAll().fetchAll();
  assert.ok(all.some((database) => database.id === id));
  const { resources: found } = await client.databases
    .query({ query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: id }] })
    .fetchAll();
  assert.deepEqual(found.map((database) => database.id), [id]);
  await fails(409, client.databases.create({ id }));
  assert.equal((await client.databases.createIfNotExists({ id })).resource._rid, created.resource._rid);
  await client.database(id).delete();
  await fails(404, client.database(id).read());
  await fails(404, client.database(id).delete());
});

scenario("databases are listed in pages", async ({ client }) => {
  const wanted = ["1", "2", "3", "4", "5"].map((n) => name(`page${n}`));
  for (const id of wanted) await client.databases.create({ id });
  const seen = [];
  const iterator = client.databases.readAll({ maxItemCount: 2 });
  while (iterator.hasMoreResults()) {
    const { resources } = await iterator.fetchNext();
    assert.ok((resources?.length ?? 0) <= 2);
    seen.push(...(resources ?? []).map((database) => database.id));
  }
  for (const id of wanted) {
    assert.equal(seen.filter((found) => found === id).length, 1, id);
    await client.database(id).delete();
  }
});

scenario("names may hold any allowed character", async ({ client, database }) => {
  for (const stem of ["with space", "Validate 中文 Query", "a.b-c_d~e,f=g(h)[i]{j}@k!l$m^n+o"]) {
    const id = `${stem} ${name("x")}`;
    await client.databases.create({ id });
    assert.equal((await client.database(id).read()).resource.id, id);
    await client.database(id).delete();
    const { container } = await database.containers.create({ id, partitionKey: { paths: ["/pk"] } });
    await container.items.create({ id: "1", pk: "a" });
    assert.equal((await container.item("1", "a").read()).resource.id, "1");
    assert.equal((await rows(container, "SELECT * FROM c")).length, 1);
  }
});

scenario("containers are created, read, listed, queried, replaced and deleted", async ({ database }) => {
  const id = name("c");
  const created = await database.containers.create({ id, partitionKey: { paths: ["/pk"] } });
  assert.equal(created.statusCode, 201);
  assert.deepEqual(created.resource.indexingPolicy, {
    indexingMode: "consistent",
    automatic: true,
    includedPaths: [{ path: "/*" }],
    excludedPaths: [{ path: '/"_etag"/?' }],
  });
  const container = database.container(id);
  assert.equal((await container.read()).resource._rid, created.resource._rid);
  assert.deepEqual((await database.containers.readAll().fetchAll()).resources.map((c) => c.id), [id]);
  const query = { query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: id }] };
  assert.deepEqual((await database.containers.query(query).fetchAll()).resources.map((c) => c.id), [id]);
  await fails(409, database.containers.create({ id, partitionKey: { paths: ["/pk"] } }));
  const same = await database.containers.createIfNotExists({ id, partitionKey: { paths: ["/pk"] } });
  assert.equal(same.resource._rid, created.resource._rid);

  const replaced = await container.replace({
    ...created.resource,
    defaultTtl: 3600,
    indexingPolicy: { indexingMode: "consistent", automatic: true, includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/x/*" }] },
  });
  assert.equal(replaced.resource.defaultTtl, 3600);
  assert.deepEqual(replaced.resource.indexingPolicy.excludedPaths, [{ path: "/x/*" }, { path: '/"_etag"/?' }]);
  await fails(400, container.replace({ ...created.resource, partitionKey: { paths: ["/other"] } }));

  await container.delete();
  await fails(404, container.read());
});

scenario("a partition key may be given as a path, or not at all", async ({ database }) => {
  const { container } = await database.containers.create({ id: name("c"), partitionKey: "/city" });
  await container.items.create({ id: "1", city: "Oslo" });
  assert.equal((await container.item("1", "Oslo").read()).resource.city, "Oslo");
  const { container: bare } = await database.containers.create({ id: name("c") });
  const { resource } = await bare.items.create({ id: "1", n: 1 });
  assert.equal(resource.n, 1);
  assert.equal((await bare.item("1", undefined).read()).resource.n, 1);
  assert.equal((await rows(bare, "SELECT * FROM c")).length, 1);
});

scenario("definitions make the round trip", async ({ database }) => {
  const definition = {
    id: name("c"),
    partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 },
    defaultTtl: -1,
    uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] },
    computedProperties: [{ name: "lower", query: "SELECT VALUE LOWER(c.name) FROM c" }],
    geospatialConfig: { type: "Geometry" },
    conflictResolutionPolicy: { mode: "LastWriterWins", conflictResolutionPath: "/stamp" },
    indexingPolicy: {
      indexingMode: "consistent",
      automatic: true,
      includedPaths: [{ path: "/*" }],
      excludedPaths: [{ path: "/blob/*" }, { path: '/"_etag"/?' }],
      compositeIndexes: [[{ path: "/a", order: "ascending" }, { path: "/b", order: "descending" }]],
    },
  };
  const { container } = await database.containers.create(definition);
  const { resource } = await container.read();
  for (const member of ["partitionKey", "defaultTtl", "computedProperties", "geospatialConfig", "indexingPolicy"]) {
    assert.deepEqual(resource[member], definition[member], member);
  }
  assert.deepEqual(resource.uniqueKeyPolicy.uniqueKeys[0].paths, ["/email"]);
  assert.equal(resource.conflictResolutionPolicy.conflictResolutionPath, "/stamp");
});

scenario("a container reports its quota", async (account) => {
  const container = await account.container();
  const { headers } = await container.read({ populateQuotaInfo: true });
  assert.ok(headers["x-ms-resource-quota"].includes("collectionSize=10485760"), headers["x-ms-resource-quota"]);
  assert.ok(headers["x-ms-resource-usage"]);
});

scenario("a recreated container is a new one", async (account) => {
  const container = await account.container();
  await container.items.create({ id: "1", pk: "a" });
  const before = (await container.read()).resource._rid;
  await container.delete();
  await account.database.containers.create({ id: container.id, partitionKey: { paths: ["/pk"], version: 2 } });
  assert.notEqual((await container.read()).resource._rid, before);
  assert.deepEqual(await rows(account.database.container(container.id), "SELECT * FROM c"), []);
});

scenario("bad definitions are refused", async ({ database }) => {
  const bad = (definition, mentions) =>
    fails(400, database.containers.create({ id: name("c"), partitionKey: { paths: ["/pk"] }, ...definition }), { mentions });
  await bad({ defaultTtl: 0 });
  await bad({ throughput: 399 });
  await bad({ partitionKey: { paths: ["/a", "/b", "/c", "/d"], kind: "MultiHash", version: 2 } }, "Too many partition key paths");
  await bad({ computedProperties: [{ name: "id", query: "SELECT VALUE LOWER(c.name) FROM c" }] });
  await fails(400, database.containers.create({ id: "n".repeat(256), partitionKey: { paths: ["/pk"] } }));
});

scenario("server-side scripts are resources, and running one is refused by name", async (account) => {
  const container = await account.container();
  const { storedProcedures, userDefinedFunctions, triggers } = container.scripts;
  const script = { id: "s", body: "function () {}" };
  for (const [all, one, definition] of [
    [storedProcedures, container.scripts.storedProcedure("s"), script],
    [userDefinedFunctions, container.scripts.userDefinedFunction("s"), script],
    [triggers, container.scripts.trigger("s"), { ...script, triggerType: "Pre", triggerOperation: "All" }],
  ]) {
    const { resource: created } = await all.create(definition);
    assert.equal(created.body, definition.body);
    assert.equal((await one.read()).resource._rid, created._rid);
    assert.deepEqual((await all.readAll().fetchAll()).resources.map((found) => found.id), ["s"]);
    const { resource: replaced } = await one.replace({ ...definition, body: "function () { return 1; }" });
    assert.equal(replaced.body, "function () { return 1; }");
    await fails(409, all.create(definition));
  }
  await assert.rejects(container.scripts.storedProcedure("s").execute("a"), (error) => {
    assert.equal(error.code, 400);
    assert.ok(String(error.message).includes("stored procedures"), error.message);
    return true;
  });
  await container.scripts.storedProcedure("s").delete();
  await fails(404, container.scripts.storedProcedure("s").read());
});

scenario("a wrong key is refused", async (account) => {
  const client = account.open({ key: Buffer.from("wrong key, but a key").toString("base64") });
  await fails(401, client.databases.readAll().fetchAll());
});

scenario("what is missing is said to be", async ({ client, database }) => {
  await fails(404, client.database(name("none")).read());
  await fails(404, database.container("none").read());
  await fails(404, database.container("none").items.create({ id: "1", pk: "a" }));
});

scenario("there are no conflicts", async (account) => {
  const container = await account.container();
  assert.deepEqual((await container.conflicts.readAll().fetchAll()).resources, []);
  await fails(404, container.conflict("none", "a").read());
});
