package scenarios

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

func TheNearestVectorsComeFirst(account *Account) {
	container := account.Container(func(properties *azcosmos.ContainerProperties) {
		properties.VectorEmbeddingPolicy = &azcosmos.VectorEmbeddingPolicy{
			VectorEmbeddings: []azcosmos.VectorEmbedding{{
				Path: "/v", DataType: azcosmos.VectorDataTypeFloat32,
				DistanceFunction: azcosmos.VectorDistanceFunctionCosine, Dimensions: 3,
			}},
		}
		properties.IndexingPolicy = &azcosmos.IndexingPolicy{
			Automatic:     true,
			IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
			VectorIndexes: []azcosmos.VectorIndex{{Path: "/v", Type: azcosmos.VectorIndexTypeFlat}},
		}
	})
	found := Must(container.Read(account.Context, nil)).ContainerProperties
	Equal(found.VectorEmbeddingPolicy.VectorEmbeddings[0].Dimensions, 3, "dimensions")
	Equal(found.IndexingPolicy.VectorIndexes[0].Type, "flat", "type of index")
	for id, vector := range map[string][]float64{"east": {1, 0, 0}, "north": {0, 1, 0}, "northeast": {1, 1, 0}} {
		account.Create(container, M{"id": id, "pk": "a", "v": vector})
	}
	Equal(account.Rows(container,
		"SELECT TOP 2 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v)", Key("a"), "@v", []float64{1, 0.1, 0}),
		[]string{"east", "northeast"}, "nearest")
}

func FullTextIsFilteredAndRanked(account *Account) {
	container := account.Container(func(properties *azcosmos.ContainerProperties) {
		properties.FullTextPolicy = &azcosmos.FullTextPolicy{
			DefaultLanguage: "en-US",
			FullTextPaths:   []azcosmos.FullTextPath{{Path: "/text", Language: "en-US"}},
		}
		properties.IndexingPolicy = &azcosmos.IndexingPolicy{
			Automatic:       true,
			IncludedPaths:   []azcosmos.IncludedPath{{Path: "/*"}},
			FullTextIndexes: []azcosmos.FullTextIndex{{Path: "/text"}},
		}
	})
	Equal(Must(container.Read(account.Context, nil)).ContainerProperties.FullTextPolicy.DefaultLanguage, "en-US", "language")
	for number, text := range []string{
		"The swimmer swims across the cold lake", "A runner never swims", "Mountains and lakes of the north",
	} {
		account.Create(container, M{"id": fmt.Sprint(number + 1), "pk": "a", "text": text})
	}
	rows := func(query string) []any { return account.Rows(container, query, Key("a")) }
	Equal(Sorted(rows("SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'SWIMS')")), []string{"1", "2"}, "ids")
	Equal(rows("SELECT TOP 1 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'swims', 'lake')"), []string{"1"}, "best")
}
