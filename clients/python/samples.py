"""Runs the samples of the Python SDK, unchanged, against an account.

    python samples.py ENDPOINT KEY [WORD]

The samples are those of the source distribution of azure-cosmos in `.venv/samples`, where `clients/run` puts them. They are
configured by the environment variables that they read themselves. A sample passes if it ends without an error; one
that fails against every account, by a mistake of its own, passes if it gets that far.
"""

import os
import pathlib
import subprocess
import sys

from azure.cosmos import CosmosClient

FOLDER = pathlib.Path(__file__).parent / ".venv" / "samples"
SECONDS_PER_SAMPLE = 300

# Modules that samples import, and samples of services that are not an account.
NOT_RUN = {
    "config.py": "settings of the samples",
    "vector_test_data.py": "data of the samples",
    "access_cosmos_with_aad.py": "needs Microsoft Entra ID",
    "access_cosmos_with_aad_async.py": "needs Microsoft Entra ID",
    "access_fabric_with_overridenscope_aad.py": "needs Microsoft Entra ID and Fabric",
    "session_token_management.py": "needs Microsoft Entra ID",
    "session_token_management_async.py": "needs Microsoft Entra ID",
}

# Samples that end with an error against every account, and the last thing that they get.
OWN_MISTAKES = {
    # It replaces an item by the ETag from before another operation of the same batch.
    "document_management.py": "error in the transactional batch on index 5",
    # It reads an item of a container with three levels by a key of one.
    "examples.py": "Partition key provided either doesn't correspond to definition in the collection",
    # It reads an item of the database that it has just deleted.
    "examples_async.py": "Owner resource does not exist",
    # It deletes the database with a resource token for one item.
    "access_cosmos_with_resource_token_async.py": "Insufficient permissions",
}

# What a sample prints when it catches an error that it did not mean to cause.
ERRORS = ("Traceback (most recent call last)", "has caught an error", "Error in reading item with id '3'")


def main(endpoint: str, key: str, word: str) -> int:
    samples = sorted(path for path in FOLDER.glob("*.py") if word in path.name)
    if not samples:
        print(f"no samples in {FOLDER}")
        return 1
    passed = failed = 0
    client = CosmosClient(endpoint, key)
    kept = databases(client)
    for path in samples:
        reason = NOT_RUN.get(path.name)
        if reason:
            print(f"skipped  {path.name}: {reason}")
            continue
        problem = run(path, endpoint, key)
        # Nothing of one sample is left for the next.
        for name in databases(client) - kept:
            client.delete_database(name)
        if problem:
            failed += 1
            print(f"FAILED   {path.name}: {problem}")
        else:
            passed += 1
            mistake = ", up to a mistake of its own" if path.name in OWN_MISTAKES else ""
            print(f"ok       {path.name}{mistake}")
    print(f"{passed} samples passed, {failed} failed")
    return 1 if failed else 0


def run(path: pathlib.Path, endpoint: str, key: str) -> str | None:
    """Runs one sample; what is wrong with it, if something is."""
    settings = {
        "ACCOUNT_HOST": endpoint,
        "ACCOUNT_URI": endpoint,
        "ACCOUNT_KEY": key,
        "CONN_STR": f"AccountEndpoint={endpoint};AccountKey={key};",
        "COSMOS_ACCOUNT_URL": endpoint,
        "COSMOS_CREDENTIAL": key,
        "COSMOS_DATABASE": "samples",
        "COSMOS_CONTAINER": "samples",
        "DATABASE_NAME": "samples",
    }
    try:
        ended = subprocess.run(
            [sys.executable, path.name],
            cwd=path.parent,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS_PER_SAMPLE,
        )
    except subprocess.TimeoutExpired:
        return f"still running after {SECONDS_PER_SAMPLE} s"
    output = ended.stdout
    mistake = OWN_MISTAKES.get(path.name)
    if mistake:
        return None if mistake in output else f"did not get as far as '{mistake}':\n{output[-2000:]}"
    if ended.returncode != 0 or any(error in output for error in ERRORS):
        return f"exit code {ended.returncode}\n{output[-2000:]}"
    return None


def databases(client: CosmosClient) -> set[str]:
    """The names of all databases."""
    return {database["id"] for database in client.list_databases()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""))
