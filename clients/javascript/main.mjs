// Exercises a Cosmos DB account through @azure/cosmos.
//
// Usage: node main.mjs ENDPOINT KEY [WORD]. With WORD, only the scenarios whose title contains it.
// Prints one line per scenario and a total; exits with 1 when one failed.

import { run } from "./harness.mjs";

import "./scenarios/quickstart.mjs";
import "./scenarios/resources.mjs";
import "./scenarios/partition_keys.mjs";
import "./scenarios/items.mjs";
import "./scenarios/patches.mjs";
import "./scenarios/batches.mjs";
import "./scenarios/bulk.mjs";
import "./scenarios/queries.mjs";
import "./scenarios/merged_queries.mjs";
import "./scenarios/paging.mjs";
import "./scenarios/change_feed.mjs";
import "./scenarios/throughput.mjs";
import "./scenarios/throttling.mjs";
import "./scenarios/permissions.mjs";
import "./scenarios/sessions.mjs";
import "./scenarios/regions.mjs";
import "./scenarios/lifetimes.mjs";
import "./scenarios/search.mjs";
import "./scenarios/encryption.mjs";

const [endpoint, key, only] = process.argv.slice(2);
// Idle connections of the SDK would keep the process alive.
process.exit(await run(endpoint, key, only));
