// Users, permissions and resource tokens.

import assert from "node:assert/strict";
import { PermissionMode } from "@azure/cosmos";
import { fails, name, rows, scenario } from "../harness.mjs";

scenario("users are created, listed, replaced and deleted", async ({ database }) => {
  const { user, resource } = await database.users.create({ id: "u1" });
  assert.ok(resource._rid);
  await fails(409, database.users.create({ id: "u1" }));
  await database.users.upsert({ id: "u2" });
  assert.deepEqual((await database.users.readAll().fetchAll()).resources.map((u) => u.id).sort(), ["u1", "u2"]);
  const { resources } = await database.users.query("SELECT * FROM root r WHERE r.id = 'u2'").fetchAll();
  assert.equal(resources.length, 1);
  await database.user("u2").replace({ id: "u3" });
  assert.equal((await database.user("u3").read()).resource.id, "u3");
  await user.delete();
  await fails(404, user.read());
});

async function grant(account, container, permissionMode, more = {}) {
  const { user } = await account.database.users.create({ id: name("u") });
  const body = { id: "p", permissionMode, resource: container.url, ...more };
  const { resource, permission } = await user.permissions.create(body);
  return { user, resource, permission };
}

const withToken = (account, container, token) =>
  account
    .open({ key: undefined, resourceTokens: { [container.url]: token } })
    .database(account.database.id)
    .container(container.id);

scenario("permissions are created, listed, replaced and deleted", async (account) => {
  const container = await account.container();
  const { user, resource, permission } = await grant(account, container, PermissionMode.Read);
  assert.ok(resource._token.startsWith("type=resource"), resource._token);
  assert.equal((await permission.read()).resource.permissionMode, PermissionMode.Read);
  assert.equal((await user.permissions.readAll().fetchAll()).resources.length, 1);
  const { resource: replaced } = await permission.replace({ ...resource, permissionMode: PermissionMode.All });
  assert.equal(replaced.permissionMode, PermissionMode.All);
  await permission.delete();
  await fails(404, permission.read());
});

scenario("a read token reads but does not write", async (account) => {
  const container = await account.container();
  await container.items.create({ id: "1", pk: "a" });
  const { resource } = await grant(account, container, PermissionMode.Read);
  const reader = withToken(account, container, resource._token);
  assert.equal((await reader.read()).resource.id, container.id);
  assert.equal((await reader.item("1", "a").read()).resource.id, "1");
  assert.equal((await rows(reader, "SELECT * FROM c", { partitionKey: "a" })).length, 1);
  await fails(403, reader.items.create({ id: "2", pk: "a" }));
  await fails(403, reader.item("1", "a").delete());
});

scenario("a directory token is accepted", async (account) => {
  const container = await account.container();
  await container.items.create({ id: "1", pk: "a" });
  const part = (content) => Buffer.from(JSON.stringify(content)).toString("base64url");
  const now = Math.floor(Date.now() / 1000);
  const claims = { aud: "https://localhost", iss: "https://sts.local", oid: "somebody", nbf: now, exp: now + 3600 };
  const token = `${part({ alg: "none", typ: "JWT" })}.${part(claims)}.c2lnbmF0dXJl`;
  const aadCredentials = { getToken: async () => ({ token, expiresOnTimestamp: (now + 3600) * 1000 }) };
  // The SDK sends such a token over TLS only, which the account speaks on the same port.
  const endpoint = account.endpoint.replace("http://", "https://");
  const client = account.open({ endpoint, key: undefined, aadCredentials });
  const theirs = client.database(account.database.id).container(container.id);
  assert.equal((await theirs.item("1", "a").read()).resource.id, "1");
});

scenario("an all token writes to its container only", async (account) => {
  const container = await account.container();
  const other = await account.container();
  const { resource } = await grant(account, container, PermissionMode.All);
  const writer = withToken(account, container, resource._token);
  await writer.items.create({ id: "1", pk: "a" });
  await writer.item("1", "a").delete();
  const intruder = withToken(account, other, resource._token);
  await fails(403, intruder.items.create({ id: "1", pk: "a" }));
});
