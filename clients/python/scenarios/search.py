"""Vector and full-text search."""

from azure.cosmos import PartitionKey

from harness import check, collect, equal, fails, scenario

VECTORS = {
    "east": [1.0, 0.0, 0.0],
    "north": [0.0, 1.0, 0.0],
    "up": [0.0, 0.0, 1.0],
    "northeast": [0.7, 0.7, 0.0],
    "west": [-1.0, 0.0, 0.0],
}


def embedding(distance="cosine", **more):
    return {
        "vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": 3, "distanceFunction": distance, **more}
        ]
    }


async def vectors(account, distance="cosine", index="flat"):
    container = await account.several_partitions(
        vector_embedding_policy=embedding(distance),
        indexing_policy={
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/v/*"}],
            "vectorIndexes": [{"path": "/v", "type": index}],
        },
    )
    for direction, vector in VECTORS.items():
        await container.create_item({"id": direction, "pk": direction, "v": vector})
    return container


@scenario
async def the_nearest_vectors_come_first(account):
    for distance, expected in (
        ("cosine", ["east", "northeast"]),
        ("dotproduct", ["east", "northeast"]),
        ("euclidean", ["east", "northeast"]),
    ):
        container = await vectors(account, distance)
        query = "SELECT TOP 2 c.id, VectorDistance(c.v, @v) AS score FROM c ORDER BY VectorDistance(c.v, @v)"
        found = await collect(
            container.query_items(query, parameters=[{"name": "@v", "value": [1.0, 0.1, 0.0]}])
        )
        equal([row["id"] for row in found], expected, distance)
        check(all(isinstance(row["score"], (int, float)) for row in found), f"{found}")
        scores = [row["score"] for row in found]
        equal(scores, sorted(scores, reverse=distance != "euclidean"), distance)


@scenario
async def vector_policies_make_the_round_trip_and_stay(account):
    container = await vectors(account, "dotproduct", "quantizedFlat")
    properties = await container.read()
    found = properties["vectorEmbeddingPolicy"]["vectorEmbeddings"][0]
    equal((found["path"], found["dimensions"], found["distanceFunction"]), ("/v", 3, "dotproduct"))
    equal(properties["indexingPolicy"]["vectorIndexes"][0]["type"], "quantizedFlat")


@scenario
async def bad_vector_policies_are_refused(account):
    index = {"vectorIndexes": [{"path": "/v", "type": "flat"}]}
    for policy, indexing, fragment in (
        (
            embedding(),
            {"vectorIndexes": [{"path": "/other", "type": "flat"}]},
            "not matching in Embedding's path",
        ),
        (embedding(), {"vectorIndexes": [{"path": "/v", "type": "magic"}]}, "is invalid"),
        (embedding("magic"), index, "The Vector Embedding Policy has an invalid DistanceFunction"),
        (embedding(dataType="float65"), index, "Vector Embedding Policy has an invalid DataType"),
        (embedding(dimensions=-1), index, "The Vector Embedding Policy has Dimensions"),
    ):
        await fails(
            400,
            account.container(vector_embedding_policy=policy, indexing_policy=indexing),
            mentions=fragment,
        )


@scenario
async def vector_indexes_stay_as_they_were_made(account):
    container = await vectors(account, "euclidean", "flat")
    await fails(
        400,
        account.database.replace_container(
            container.id,
            partition_key=PartitionKey(path="/pk"),
            vector_embedding_policy=embedding("euclidean"),
            indexing_policy={"vectorIndexes": [{"path": "/v", "type": "quantizedFlat"}]},
        ),
        mentions="Paths in existing vector indexing policy cannot be modified in Collection Replace",
    )


@scenario
async def ranks_and_distances_have_no_direction(account):
    container = await vectors(account)
    for query in (
        "SELECT TOP 2 c.id FROM c ORDER BY VectorDistance(c.v, [1, 0, 0]) DESC",
        "SELECT TOP 2 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'word') ASC",
    ):
        await fails(400, collect(container.query_items(query)), mentions="(ASC or DESC)")


TEXTS = {
    "1": "The swimmer swims across the cold lake",
    "2": "A runner never swims",
    "3": "Mountains and lakes of the north",
    "4": "Nothing to see here",
}


async def texts(account):
    container = await account.several_partitions(
        full_text_policy={
            "defaultLanguage": "en-US",
            "fullTextPaths": [{"path": "/text", "language": "en-US"}],
        },
        indexing_policy={"includedPaths": [{"path": "/*"}], "fullTextIndexes": [{"path": "/text"}]},
    )
    for number, text in TEXTS.items():
        await container.create_item(
            {"id": number, "pk": number, "text": text, "v": [float(number), 1.0, 0.0]}
        )
    return container


@scenario
async def full_text_filters(account):
    container = await texts(account)

    async def found(condition):
        rows = await collect(container.query_items(f"SELECT VALUE c.id FROM c WHERE {condition}"))
        return sorted(rows)

    equal(await found("FullTextContains(c.text, 'lake')"), ["1", "3"])
    equal(await found("FullTextContains(c.text, 'SWIMS')"), ["1", "2"])
    equal(await found("FullTextContainsAll(c.text, 'swims', 'lake')"), ["1"])
    equal(await found("FullTextContainsAny(c.text, 'runner', 'mountains')"), ["2", "3"])
    equal(await found("NOT FullTextContains(c.text, 'lake')"), ["2", "4"])


@scenario
async def full_text_ranking(account):
    container = await texts(account)
    query = "SELECT TOP 3 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'swims', 'lake')"
    found = [row["id"] for row in await collect(container.query_items(query))]
    equal(found[0], "1")
    equal(sorted(found), ["1", "2", "3"])


@scenario
async def hybrid_ranking(account):
    container = await account.several_partitions(
        full_text_policy={
            "defaultLanguage": "en-US",
            "fullTextPaths": [{"path": "/text", "language": "en-US"}],
        },
        vector_embedding_policy=embedding(),
        indexing_policy={
            "includedPaths": [{"path": "/*"}],
            "fullTextIndexes": [{"path": "/text"}],
            "vectorIndexes": [{"path": "/v", "type": "flat"}],
        },
    )
    for number, text in TEXTS.items():
        vector = [1.0, 0.0, 0.0] if number == "1" else [0.0, 1.0, 0.0]
        await container.create_item({"id": number, "pk": number, "text": text, "v": vector})
    query = (
        "SELECT TOP 2 c.id FROM c "
        "ORDER BY RANK RRF(FullTextScore(c.text, 'swims', 'lake'), VectorDistance(c.v, [1.0, 0.0, 0.0]))"
    )
    found = [row["id"] for row in await collect(container.query_items(query))]
    equal(found[0], "1")
    equal(len(found), 2)
