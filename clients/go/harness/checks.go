package harness

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// M is an item, or any other JSON object.
type M = map[string]any

// Name is a name nothing else uses.
func Name(prefix string) string {
	return prefix + "-" + strings.ToLower(rand.Text()[:12])
}

// Must gives the value of a call that has to succeed.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Check panics unless the condition holds.
func Check(condition bool, otherwise string, details ...any) {
	if !condition {
		panic(fmt.Sprintf(otherwise, details...))
	}
}

// Equal compares two values as JSON, so that 1 and 1.0 are the same number.
func Equal(actual, expected any, what string) {
	found, wanted := string(Bytes(actual)), string(Bytes(expected))
	Check(found == wanted, "%s: expected %s, found %s", what, wanted, found)
}

// Fails gives the error of a call that has to be refused with `status`.
func Fails[T any](status int, _ T, err error) *azcore.ResponseError {
	Check(err != nil, "expected %d, but it succeeded", status)
	var response *azcore.ResponseError
	Check(errors.As(err, &response), "expected %d, found %v", status, err)
	Check(response.StatusCode == status, "expected %d, found %v", status, err)
	return response
}

// Bytes is a value as JSON.
func Bytes(value any) []byte {
	return Must(json.Marshal(value))
}

// Value is JSON as maps, lists, strings and numbers.
func Value(body []byte) (value any) {
	Must(0, json.Unmarshal(body, &value))
	return value
}

// Item is a JSON object as a map.
func Item(body []byte) (item M) {
	Check(len(body) > 0, "the response has no body")
	Must(0, json.Unmarshal(body, &item))
	return item
}

// Key is a partition key of any value.
func Key(values ...any) azcosmos.PartitionKey {
	key := azcosmos.NewPartitionKey()
	for _, value := range values {
		switch value := value.(type) {
		case string:
			key = key.AppendString(value)
		case float64:
			key = key.AppendNumber(value)
		case int:
			key = key.AppendNumber(float64(value))
		case bool:
			key = key.AppendBool(value)
		case nil:
			key = key.AppendNull()
		default:
			panic(fmt.Sprintf("no partition key of %T", value))
		}
	}
	return key
}

// Everywhere is the partition key of a query that crosses partitions.
func Everywhere() azcosmos.PartitionKey {
	return azcosmos.NewPartitionKey()
}

// Create stores a new item under the value of its `pk`.
func (a *Account) Create(container *azcosmos.ContainerClient, item M) M {
	return Item(Must(container.CreateItem(a.Context, Key(item["pk"]), Bytes(item), nil)).Value)
}

// Upsert stores an item, new or not, under the value of its `pk`.
func (a *Account) Upsert(container *azcosmos.ContainerClient, item M) M {
	return Item(Must(container.UpsertItem(a.Context, Key(item["pk"]), Bytes(item), nil)).Value)
}

// Read reads an item by its partition key and id.
func (a *Account) Read(container *azcosmos.ContainerClient, key any, id string) M {
	return Item(Must(container.ReadItem(a.Context, Key(key), id, nil)).Value)
}

// Pages is every page of a pager.
func Pages[T any](ctx context.Context, pager *runtime.Pager[T]) (pages []T, err error) {
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return pages, err
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// Query is every row of a query; parameters follow as name, value, name, value.
func (a *Account) Query(
	container *azcosmos.ContainerClient,
	query string,
	key azcosmos.PartitionKey,
	parameters ...any,
) ([]any, error) {
	options := azcosmos.QueryOptions{}
	for place := 0; place < len(parameters); place += 2 {
		options.QueryParameters = append(options.QueryParameters,
			azcosmos.QueryParameter{Name: parameters[place].(string), Value: parameters[place+1]})
	}
	pages, err := Pages(a.Context, container.NewQueryItemsPager(query, key, &options))
	rows := []any{}
	for _, page := range pages {
		for _, row := range page.Items {
			rows = append(rows, Value(row))
		}
	}
	return rows, err
}

// Rows is every row of a query that has to succeed.
func (a *Account) Rows(
	container *azcosmos.ContainerClient,
	query string,
	key azcosmos.PartitionKey,
	parameters ...any,
) []any {
	return Must(a.Query(container, query, key, parameters...))
}

// Sorted sorts rows by their JSON; numbers by their value.
func Sorted(rows []any) []any {
	sort.SliceStable(rows, func(left, right int) bool {
		one, numeric := rows[left].(float64)
		other, both := rows[right].(float64)
		if numeric && both {
			return one < other
		}
		return string(Bytes(rows[left])) < string(Bytes(rows[right]))
	})
	return rows
}

// Numbers is the list from `start` up to but without `end`.
func Numbers(start, end int) []any {
	numbers := []any{}
	for number := start; number < end; number++ {
		numbers = append(numbers, number)
	}
	return numbers
}

// IDs is the sorted list of the ids of some items.
func IDs(items [][]byte) []any {
	found := []any{}
	for _, item := range items {
		found = append(found, Item(item)["id"])
	}
	return Sorted(found)
}
