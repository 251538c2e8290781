//! Vector search, and the policies behind it.

use std::sync::Arc;

use azure_data_cosmos::{
    FeedScope, Query,
    clients::ContainerClient,
    models::{
        FullTextPath, FullTextPolicy, IndexingPolicy, VectorDataType, VectorDistanceFunction,
        VectorEmbedding, VectorEmbeddingPolicy, VectorIndex, VectorIndexType,
    },
};
use serde_json::{Value, json};

use crate::harness::{Account, Failure, Outcome, equal, rows};

async fn vectors(account: &Account, distance: VectorDistanceFunction) -> Result<ContainerClient, Failure> {
    let embedding = VectorEmbedding::new("/v", VectorDataType::Float32, 3, distance);
    let policy = IndexingPolicy::default()
        .with_included_path("/*")
        .with_excluded_path("/v/*")
        .with_vector_index(VectorIndex::new("/v", VectorIndexType::Flat));
    let full_text =
        FullTextPolicy::new("en-US").with_full_text_path(FullTextPath::new("/text").with_language("en-US"));
    account
        .create("/pk".into(), 30_000, |properties| {
            properties
                .with_vector_embedding_policy(VectorEmbeddingPolicy::default().with_embedding(embedding))
                .with_full_text_policy(full_text)
                .with_indexing_policy(policy)
        })
        .await
}

pub async fn the_nearest_vectors_come_first(account: Arc<Account>) -> Outcome {
    for distance in [
        VectorDistanceFunction::Cosine,
        VectorDistanceFunction::DotProduct,
        VectorDistanceFunction::Euclidean,
    ] {
        let container = vectors(&account, distance).await?;
        for (id, vector) in [
            ("east", [1.0, 0.0, 0.0]),
            ("north", [0.0, 1.0, 0.0]),
            ("northeast", [0.7, 0.7, 0.0]),
            ("west", [-1.0, 0.0, 0.0]),
        ] {
            container.create_item(id, id, json!({"id": id, "pk": id, "v": vector}), None).await?;
        }
        let query = Query::from("SELECT TOP 2 c.id FROM c ORDER BY VectorDistance(c.v, @v)")
            .with_parameter("@v", [1.0, 0.1, 0.0])?;
        let found: Vec<Value> = rows(&container, query, FeedScope::full_container()).await?;
        equal(json!(found), json!([{"id": "east"}, {"id": "northeast"}]), "nearest");
    }
    Ok(())
}

pub async fn policies_make_the_round_trip(account: Arc<Account>) -> Outcome {
    let container = vectors(&account, VectorDistanceFunction::DotProduct).await?;
    let found = container.read(None).await?.into_model()?;
    let embedding = &found.vector_embedding_policy.expect("an embedding policy").embeddings[0];
    equal(embedding.dimensions, 3, "dimensions");
    equal(embedding.path.as_str(), "/v", "path");
    let full_text = found.full_text_policy.expect("a full-text policy");
    equal(full_text.full_text_paths[0].path.as_str(), "/text", "full-text path");
    Ok(())
}
