// What every scenario stands on: registration, checks, and a report.
//
// A scenario is an async function of one argument, an `Account`. It gets a database of its own, which is
// deleted afterwards, so scenarios neither see nor disturb one another.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { CosmosClient } from "@azure/cosmos";

const MILLISECONDS_PER_SCENARIO = 90_000;

const scenarios = [];

/** Registers a scenario, to be run in the order of registration. */
export function scenario(title, run) {
  scenarios.push({ title, run });
}

/** The account under test, as one scenario sees it. */
class Account {
  #clients = [];

  constructor(endpoint, key) {
    this.endpoint = endpoint;
    this.key = key;
  }

  /** A client of its own; disposed of when the scenario ends. */
  open(options = {}) {
    const client = new CosmosClient({ endpoint: this.endpoint, key: this.key, ...options });
    this.#clients.push(client);
    return client;
  }

  /** A fresh container, by default with the partition key /pk in version 2. */
  async container(definition = {}, options) {
    const partitionKey = { paths: ["/pk"], kind: "Hash", version: 2 };
    const body = { id: name("c"), partitionKey, ...definition };
    return (await this.database.containers.create(body, options)).container;
  }

  /** A fresh container that spans several physical partitions. */
  async severalPartitions(definition = {}) {
    const container = await this.container({ throughput: 30_000, ...definition });
    const ranges = await container.getFeedRanges();
    assert.ok(ranges.length >= 3, `30,000 RU/s gave only ${ranges.length} physical partitions`);
    return container;
  }

  async begin() {
    this.client = this.open();
    this.database = (await this.client.databases.create({ id: name("db") })).database;
  }

  async end() {
    try {
      await this.database?.delete();
    } finally {
      for (const client of this.#clients) client.dispose();
    }
  }
}

/** A name nothing else uses. */
export function name(prefix) {
  return `${prefix}-${randomUUID().slice(0, 13)}`;
}

export function sleep(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

export function upTo(count) {
  return Array.from({ length: count }, (_, number) => number);
}

/** An item without the properties the server adds. */
export function own(item) {
  return Object.fromEntries(Object.entries(item).filter(([member]) => !member.startsWith("_")));
}

export const numerically = (left, right) => left - right;

/** Awaits `call`, which has to be refused with `status`; the error is returned for further checks. */
export async function fails(status, call, { substatus, mentions } = {}) {
  let result;
  try {
    result = await call;
  } catch (error) {
    assert.equal(error.code, status, `expected ${status}: ${error.stack}`);
    if (substatus !== undefined) assert.equal(error.substatus, substatus, `substatus of ${error.message}`);
    if (mentions !== undefined) {
      assert.ok(String(error.message).includes(mentions), `should mention "${mentions}": ${error.message}`);
    }
    return error;
  }
  // The SDK does not throw for a point read or a delete of a missing item; it answers with the status.
  if (result?.statusCode === status) return result;
  assert.fail(`expected ${status}, but it succeeded: ${JSON.stringify(result?.resource ?? result?.resources)}`);
}

/** Every row of a query. */
export async function rows(container, query, options = {}, parameters = {}) {
  const specification = {
    query,
    parameters: Object.entries(parameters).map(([name, value]) => ({ name, value })),
  };
  return (await container.items.query(specification, options).fetchAll()).resources;
}

/** Runs every scenario whose title contains `only`; returns what to exit with. */
export async function run(endpoint, key, only) {
  let passed = 0;
  let failed = 0;
  for (const { title, run } of scenarios) {
    if (only && !title.includes(only)) continue;
    const account = new Account(endpoint, key);
    const started = performance.now();
    try {
      await withLimit(async () => {
        await account.begin();
        await run(account);
      });
      passed += 1;
      console.log(`ok   ${title} (${Math.round(performance.now() - started)} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${title} at ${place(error)}: ${error.code ?? ""} ${error.message}`);
    } finally {
      await withLimit(() => account.end()).catch((error) => console.error(`cleaning up after ${title}:`, error.message));
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  return failed || !passed ? 1 : 0;
}

/** Where in this program the error was met: the frames of the SDK say little. */
function place(error) {
  const frames = String(error.stack).matchAll(/scenarios\/(\w+\.mjs:\d+)/g);
  return [...frames].map(([, frame]) => frame).join(" < ") || "start";
}

async function withLimit(work) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`still running after ${MILLISECONDS_PER_SCENARIO} ms`)),
      MILLISECONDS_PER_SCENARIO,
    );
  });
  try {
    return await Promise.race([work(), limit]);
  } finally {
    clearTimeout(timer);
  }
}
