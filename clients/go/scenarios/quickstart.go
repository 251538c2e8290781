package scenarios

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

type product struct {
	ID       string `json:"id"`
	Category string `json:"category"`
	Name     string `json:"name"`
	Quantity int    `json:"quantity"`
}

// Quickstart is the first thing a new user does, written as the SDK's quickstart writes it.
func Quickstart(account *Account) {
	connectionString := "AccountEndpoint=" + account.Endpoint + ";AccountKey=" + account.Key + ";"
	names, err := quickstart(account.Context, connectionString)
	Must(names, err)
	Equal(names, []string{"Yamba Surfboard", "Kiama Classic Surfboard"}, "names")
}

func quickstart(ctx context.Context, connectionString string) ([]string, error) {
	client, err := azcosmos.NewClientFromConnectionString(connectionString, nil)
	if err != nil {
		return nil, err
	}
	_, err = client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "quickstart-go"}, nil)
	if err != nil && !alreadyThere(err) {
		return nil, err
	}
	database, err := client.NewDatabase("quickstart-go")
	if err != nil {
		return nil, err
	}
	throughput := azcosmos.NewManualThroughputProperties(400)
	_, err = database.CreateContainer(ctx, azcosmos.ContainerProperties{
		ID:                     "products",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/category"}},
	}, &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput})
	if err != nil && !alreadyThere(err) {
		return nil, err
	}
	container, err := database.NewContainer("products")
	if err != nil {
		return nil, err
	}

	key := azcosmos.NewPartitionKeyString("gear-surf-surfboards")
	for _, item := range []product{
		{"aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb", "gear-surf-surfboards", "Yamba Surfboard", 12},
		{"bbbbbbbb-1111-2222-3333-cccccccccccc", "gear-surf-surfboards", "Kiama Classic Surfboard", 25},
	} {
		bytes, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		if _, err = container.UpsertItem(ctx, key, bytes, nil); err != nil {
			return nil, err
		}
	}
	response, err := container.ReadItem(ctx, key, "aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb", nil)
	if err != nil {
		return nil, err
	}
	var read product
	if err = json.Unmarshal(response.Value, &read); err != nil {
		return nil, err
	}
	names := []string{read.Name}

	pager := container.NewQueryItemsPager(
		"SELECT * FROM products p WHERE p.category = @category AND p.quantity > 12", key,
		&azcosmos.QueryOptions{
			QueryParameters: []azcosmos.QueryParameter{{Name: "@category", Value: "gear-surf-surfboards"}},
		})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, bytes := range page.Items {
			var item product
			if err := json.Unmarshal(bytes, &item); err != nil {
				return nil, err
			}
			names = append(names, item.Name)
		}
	}
	_, err = database.Delete(ctx, nil)
	return names, err
}

func alreadyThere(err error) bool {
	var response *azcore.ResponseError
	return errors.As(err, &response) && response.StatusCode == 409
}
