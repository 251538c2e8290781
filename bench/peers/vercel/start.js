// Starts @vercel/cosmosdb-server on a loopback port given as the first argument (0 means any) and prints
// one line once it listens.
//
// Plain HTTP, as for every server of the comparison: TLS would cost all of them about the same and hide
// the rest. Its own command line closes the connection after each response; `keepAlive: true` is the
// option that spares it a connection per request.
"use strict";

const { createHttpServer } = require("@vercel/cosmosdb-server");

const port = Number(process.argv[2] ?? 0);
const server = createHttpServer({ keepAlive: true, noDelay: true }).listen(port, "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
