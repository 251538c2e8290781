"""The asynchronous SDK, as it is."""

from azure.cosmos.aio import CosmosClient

NAME = "aio"


def connect(endpoint, credential, **options):
    return CosmosClient(endpoint, credential=credential, **options)
