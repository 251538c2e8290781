"""Ways to prove who one is, other than the account key."""

import base64
import json
import time

from azure.core.credentials import AccessToken

from harness import check, collect, equal, fails, scenario


def token():
    """A well-formed token of nobody in particular: a local account has no directory to ask."""

    def part(content):
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()

    now = int(time.time())
    claims = {
        "aud": "https://localhost",
        "iss": "https://sts.local",
        "oid": "somebody",
        "nbf": now,
        "exp": now + 3600,
    }
    return AccessToken(f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}.c2lnbmF0dXJl", now + 3600)


class BlockingCredential:
    def get_token(self, *_scopes, **_options):
        return token()


class NonblockingCredential:
    async def get_token(self, *_scopes, **_options):
        return token()

    async def close(self):
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_details):
        pass


@scenario
async def a_directory_token_is_accepted(account):
    container = await account.container()
    await container.create_item({"id": "1", "pk": "a"})
    credential = BlockingCredential() if account.flavour.NAME == "sync" else NonblockingCredential()
    # The SDK sends such a token over TLS only, which the account speaks on the same port.
    endpoint = account.endpoint.replace("http://", "https://")
    client = await account.open(credential=credential, endpoint=endpoint)
    theirs = client.get_database_client(account.database.id).get_container_client(container.id)
    equal((await theirs.read_item(item="1", partition_key="a"))["id"], "1")
    await theirs.upsert_item({"id": "2", "pk": "a"})
    equal(len(await collect(theirs.query_items("SELECT * FROM c ORDER BY c.id"))), 2)


@scenario
async def a_token_is_given_again_when_its_permission_is_read(account):
    container = await account.container()
    user = await account.database.create_user({"id": "u"})
    link = (await container.read())["_self"].rstrip("/")
    granted = await user.create_permission({"id": "p", "permissionMode": "Read", "resource": link})
    check(granted.properties["_token"], "no token")
    # A permission is granted once per resource, and reading it again gives a token that works too.
    again = await user.get_permission("p")
    client = await account.open(
        credential={f"dbs/{account.database.id}/colls/{container.id}": again.properties["_token"]}
    )
    theirs = client.get_database_client(account.database.id).get_container_client(container.id)
    await fails(404, theirs.read_item(item="none", partition_key="a"))
