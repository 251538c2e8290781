package scenarios

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

func ContainersAreCreatedReadQueriedReplacedAndDeleted(account *Account) {
	properties := azcosmos.ContainerProperties{
		ID:                     Name("c"),
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}},
	}
	created := Must(account.Database.CreateContainer(account.Context, properties, nil)).ContainerProperties
	Check(created.ResourceID != "" && created.SelfLink != "" && created.ETag != nil, "%v", created)
	Equal(created.PartitionKeyDefinition.Paths, []string{"/pk"}, "paths")
	Equal(created.IndexingPolicy.IncludedPaths, []azcosmos.IncludedPath{{Path: "/*"}}, "included paths")
	container := Must(account.Database.NewContainer(properties.ID))
	read := Must(container.Read(account.Context, &azcosmos.ReadContainerOptions{PopulateQuotaInfo: true}))
	Equal(read.ContainerProperties.ResourceID, created.ResourceID, "_rid")
	quota := read.RawResponse.Header.Get("x-ms-resource-quota")
	Check(strings.Contains(quota, "collectionSize"), "quota: %q", quota)

	found := []string{}
	for _, page := range Must(Pages(account.Context, account.Database.NewQueryContainersPager(
		"SELECT * FROM root r WHERE r.id = @id",
		&azcosmos.QueryContainersOptions{
			QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: properties.ID}},
		},
	))) {
		for _, container := range page.Containers {
			found = append(found, container.ID)
		}
	}
	Equal(found, []string{properties.ID}, "queried containers")
	again, err := account.Database.CreateContainer(account.Context, properties, nil)
	Fails(409, again, err)

	changed := *created
	changed.DefaultTimeToLive = to.Ptr(int32(3600))
	changed.IndexingPolicy = &azcosmos.IndexingPolicy{
		Automatic:     true,
		IndexingMode:  azcosmos.IndexingModeConsistent,
		IncludedPaths: []azcosmos.IncludedPath{{Path: "/a/?"}},
		ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/*"}},
	}
	replaced := Must(container.Replace(account.Context, changed, nil)).ContainerProperties
	Equal(replaced.DefaultTimeToLive, 3600, "default TTL")
	Equal(replaced.IndexingPolicy.IncludedPaths, []azcosmos.IncludedPath{{Path: "/a/?"}}, "included paths")
	changed.PartitionKeyDefinition.Paths = []string{"/other"}
	kept, err := container.Replace(account.Context, changed, nil)
	Fails(400, kept, err)

	Must(container.Delete(account.Context, nil))
	gone, err := container.Read(account.Context, nil)
	Fails(404, gone, err)
}

func DefinitionsMakeTheRoundTrip(account *Account) {
	container := account.Container(func(properties *azcosmos.ContainerProperties) {
		properties.DefaultTimeToLive = to.Ptr(int32(-1))
		properties.IndexingPolicy = &azcosmos.IndexingPolicy{
			Automatic:     true,
			IndexingMode:  azcosmos.IndexingModeConsistent,
			IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
			ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/blob/*"}},
			CompositeIndexes: [][]azcosmos.CompositeIndex{{
				{Path: "/a", Order: azcosmos.CompositeIndexAscending},
				{Path: "/b", Order: azcosmos.CompositeIndexDescending},
			}},
			SpatialIndexes: []azcosmos.SpatialIndex{{
				Path: "/where/*",
				SpatialTypes: []azcosmos.SpatialType{
					azcosmos.SpatialTypePoint, azcosmos.SpatialTypeLineString,
					azcosmos.SpatialTypePolygon, azcosmos.SpatialTypeMultiPolygon,
				},
			}},
		}
		properties.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{
			UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/email"}}},
		}
		properties.ConflictResolutionPolicy = &azcosmos.ConflictResolutionPolicy{
			Mode:           azcosmos.ConflictResolutionModeLastWriteWins,
			ResolutionPath: "/stamp",
		}
	})
	found := Must(container.Read(account.Context, nil)).ContainerProperties
	Equal(found.DefaultTimeToLive, -1, "default TTL")
	Equal(found.UniqueKeyPolicy.UniqueKeys[0].Paths, []string{"/email"}, "unique keys")
	Equal(found.ConflictResolutionPolicy.ResolutionPath, "/stamp", "conflict path")
	policy := found.IndexingPolicy
	Equal(policy.CompositeIndexes[0][1].Path, "/b", "composite path")
	Equal(policy.CompositeIndexes[0][1].Order, "descending", "composite order")
	Equal(policy.SpatialIndexes[0].Path, "/where/*", "spatial path")
	Equal(len(policy.SpatialIndexes[0].SpatialTypes), 4, "spatial types")
	Equal(policy.ExcludedPaths[0].Path, "/blob/*", "excluded path")
}

func IndexingMayBeSwitchedOff(account *Account) {
	container := account.Container(func(properties *azcosmos.ContainerProperties) {
		properties.IndexingPolicy = &azcosmos.IndexingPolicy{IndexingMode: azcosmos.IndexingModeNone}
	})
	found := Must(container.Read(account.Context, nil)).ContainerProperties.IndexingPolicy
	Check(strings.EqualFold(string(found.IndexingMode), "none"), "mode %s", found.IndexingMode)
	account.Create(container, M{"id": "1", "pk": "a", "n": 1})
	Equal(account.Read(container, "a", "1")["n"], 1, "n")
}

func BadContainerDefinitionsAreRefused(account *Account) {
	refused := func(define func(*azcosmos.ContainerProperties), throughput int32, mentions string) {
		properties := azcosmos.ContainerProperties{
			ID:                     Name("c"),
			PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}},
		}
		define(&properties)
		offer := azcosmos.NewManualThroughputProperties(throughput)
		options := azcosmos.CreateContainerOptions{ThroughputProperties: &offer}
		created, err := account.Database.CreateContainer(account.Context, properties, &options)
		message := Fails(400, created, err).Error()
		Check(strings.Contains(message, mentions), "%q is not in %s", mentions, message)
	}
	nothing := func(*azcosmos.ContainerProperties) {}
	refused(nothing, 399, "")
	refused(nothing, 450, "")
	refused(func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = to.Ptr(int32(0)) }, 400, "")
	refused(KeyedBy("/pk/*"), 400, "trailing slash or wildcard character")
	refused(KeyedBy("/a", "/b", "/c", "/d"), 400, "Too many partition key paths")
}

func ARecreatedContainerIsFoundAgain(account *Account) {
	first := account.Container()
	account.Create(first, M{"id": "1", "pk": "a"})
	old := Must(first.Read(account.Context, nil)).ContainerProperties.ResourceID
	other := Must(account.Open().NewContainer(account.Database.ID(), first.ID()))
	Must(other.Delete(account.Context, nil))
	Must(account.Database.CreateContainer(account.Context, azcosmos.ContainerProperties{
		ID:                     first.ID(),
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}},
	}, nil))
	Check(Must(first.Read(account.Context, nil)).ContainerProperties.ResourceID != old, "the old one's _rid")
	account.Create(first, M{"id": "2", "pk": "b"})
	Equal(account.Rows(first, "SELECT VALUE c.id FROM c", Everywhere()), []string{"2"}, "ids")
}
