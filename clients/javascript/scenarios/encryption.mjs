// Encryption in the client: keys wrapped by a resolver of our own, a policy, and what the account stores.

import assert from "node:assert/strict";
import { createCipheriv, createDecipheriv, createHash } from "node:crypto";
import { EncryptionAlgorithm, EncryptionQueryBuilder, EncryptionType, KeyEncryptionAlgorithm } from "@azure/cosmos";
import { fails, scenario } from "../harness.mjs";

// Wraps keys with AES under a key that is derived from the id of the key encryption key.
const resolver = {
  encryptionKeyResolverName: "AZURE_KEY_VAULT",
  async wrapKey(id, _algorithm, key) {
    const cipher = createCipheriv("aes-256-ecb", createHash("sha256").update(id).digest(), null);
    return Buffer.concat([cipher.update(key), cipher.final()]);
  },
  async unwrapKey(id, _algorithm, wrapped) {
    const decipher = createDecipheriv("aes-256-ecb", createHash("sha256").update(id).digest(), null);
    return Buffer.concat([decipher.update(wrapped), decipher.final()]);
  },
};

const metadata = (value) => ({
  type: "AZURE_KEY_VAULT",
  name: `master-${value}`,
  value,
  algorithm: KeyEncryptionAlgorithm.RSA_OAEP,
});

const included = (path, encryptionType) => ({
  path,
  clientEncryptionKeyId: "key1",
  encryptionType,
  encryptionAlgorithm: EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256,
});

// An encrypting client, with a database and a container of a policy with these paths.
async function encrypting(account, includedPaths, policyFormatVersion) {
  const client = account.open({ clientEncryptionOptions: { keyEncryptionKeyResolver: resolver } });
  const database = client.database(account.database.id);
  await database.createClientEncryptionKey(
    "key1",
    EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256,
    metadata("first"),
  );
  const { container } = await database.containers.create({
    id: "encrypted",
    partitionKey: { paths: ["/pk"], version: 2 },
    clientEncryptionPolicy: { includedPaths, policyFormatVersion },
  });
  return { database, container, plain: account.database.container("encrypted") };
}

scenario("encryption: items are encrypted on the wire and read back as they were", async (account) => {
  const paths = [included("/secret", EncryptionType.RANDOMIZED), included("/name", EncryptionType.DETERMINISTIC)];
  const { container, plain } = await encrypting(account, paths, 1);
  const item = { id: "1", pk: "a", name: "Ada", secret: { born: 1815, tags: ["x", "y"] }, open: true };
  await container.items.create(item);
  const stored = (await plain.item("1", "a").read()).resource;
  assert.equal(stored.open, true);
  assert.notEqual(stored.name, "Ada");
  assert.ok(!JSON.stringify(stored).includes("1815"));
  const read = (await container.item("1", "a").read()).resource;
  assert.deepEqual([read.name, read.secret, read.open], [item.name, item.secret, true]);
  await container.item("1", "a").replace({ ...item, name: "Grace" });
  assert.equal((await container.item("1", "a").read()).resource.name, "Grace");
  const all = (await container.items.readAll().fetchAll()).resources;
  assert.deepEqual(all.map((one) => one.name), ["Grace"]);
  // A client without keys cannot add items that nobody encrypted.
  await fails(400, plain.items.create({ id: "2", pk: "a", name: "open" }));
});

scenario("encryption: queries find deterministically encrypted values", async (account) => {
  const { container } = await encrypting(account, [included("/name", EncryptionType.DETERMINISTIC)], 1);
  for (const [id, name] of [["1", "Ada"], ["2", "Grace"], ["3", "Ada"]]) {
    await container.items.create({ id, pk: "a", name });
  }
  const query = new EncryptionQueryBuilder("SELECT * FROM c WHERE c.name = @name ORDER BY c.id");
  query.addParameter("@name", "Ada", "/name");
  const iterator = await container.items.getEncryptionQueryIterator(query);
  const found = (await iterator.fetchAll()).resources;
  assert.deepEqual(found.map((one) => [one.id, one.name]), [["1", "Ada"], ["3", "Ada"]]);
});

scenario("encryption: ids and partition keys are encrypted with version 2", async (account) => {
  const paths = ["/id", "/pk"].map((path) => included(path, EncryptionType.DETERMINISTIC));
  const { container, plain } = await encrypting(account, paths, 2);
  await container.items.create({ id: "1", pk: "a", open: 1 });
  assert.equal((await container.item("1", "a").read()).resource.id, "1");
  assert.equal((await plain.item("1", "a").read()).statusCode, 404);
  const { resources } = await plain.items.query("SELECT VALUE c.id FROM c").fetchAll();
  assert.notEqual(resources[0], "1");
});

scenario("encryption: a key is wrapped anew, and what it encrypted stays readable", async (account) => {
  const { database, container } = await encrypting(account, [included("/name", EncryptionType.DETERMINISTIC)], 1);
  await container.items.create({ id: "1", pk: "a", name: "Ada" });
  const before = (await database.readClientEncryptionKey("key1")).clientEncryptionKeyProperties;
  const rewrapped = await database.rewrapClientEncryptionKey("key1", metadata("second"));
  assert.equal(rewrapped.statusCode, 200);
  const after = (await database.readClientEncryptionKey("key1")).clientEncryptionKeyProperties;
  assert.equal(after.encryptionKeyWrapMetadata.value, "second");
  assert.notDeepEqual(after.wrappedDataEncryptionKey, before.wrappedDataEncryptionKey);
  assert.equal((await container.item("1", "a").read()).resource.name, "Ada");
  await fails(
    409,
    database.createClientEncryptionKey(
      "key1",
      EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256,
      metadata("first"),
    ),
  );
});

scenario("encryption: a policy needs keys that exist", async (account) => {
  await fails(
    400,
    account.database.containers.create({
      id: "c",
      partitionKey: { paths: ["/pk"] },
      clientEncryptionPolicy: { includedPaths: [included("/a", EncryptionType.RANDOMIZED)], policyFormatVersion: 1 },
    }),
  );
});
