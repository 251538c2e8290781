"""Exercises a Cosmos DB account through azure-cosmos, synchronous and asynchronous.

Usage: main.py ENDPOINT KEY [WORD]. With WORD, only the scenarios whose name contains it.
Prints one line per scenario and a total; exits with 1 when one failed.
"""

import asyncio
import sys
import warnings

import blocking
import harness
import nonblocking
import scenarios  # noqa: F401  registers every scenario


async def main(endpoint, key, only=""):
    passed = failed = 0
    for flavour in (blocking, nonblocking):
        outcome = await harness.run(flavour, endpoint, key, only)
        passed += outcome[0]
        failed += outcome[1]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    # Over https on localhost the SDK skips verification by itself, and urllib3 warns of it each time.
    warnings.filterwarnings("ignore", message="Unverified HTTPS request")
    sys.exit(asyncio.run(main(*sys.argv[1:])))
