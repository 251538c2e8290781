package scenarios

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

func execute(
	account *Account,
	container *azcosmos.ContainerClient,
	define func(*azcosmos.TransactionalBatch),
) (azcosmos.TransactionalBatchResponse, error) {
	batch := container.NewTransactionalBatch(Key("a"))
	define(&batch)
	options := azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: true}
	return container.ExecuteTransactionalBatch(account.Context, batch, &options)
}

func codes(response azcosmos.TransactionalBatchResponse) (codes []int32) {
	for _, result := range response.OperationResults {
		codes = append(codes, result.StatusCode)
	}
	return codes
}

func numbered(number int) []byte {
	return Bytes(M{"id": fmt.Sprint(number), "pk": "a", "n": number})
}

func ABatchOfEveryOperationSucceeds(account *Account) {
	container := account.Container()
	for number := 1; number <= 5; number++ {
		account.Create(container, M{"id": fmt.Sprint(number), "pk": "a", "n": number})
	}
	patch := patchOf(func(patch *azcosmos.PatchOperations) { patch.AppendIncrement("/n", 30) })
	response := Must(execute(account, container, func(batch *azcosmos.TransactionalBatch) {
		batch.CreateItem(numbered(10), nil)
		batch.UpsertItem(numbered(11), nil)
		batch.UpsertItem(Bytes(M{"id": "1", "pk": "a", "n": 100}), nil)
		batch.ReplaceItem("2", Bytes(M{"id": "2", "pk": "a", "n": 200}), nil)
		batch.PatchItem("3", patch, nil)
		batch.ReadItem("4", nil)
		batch.DeleteItem("5", nil)
	}))
	Check(response.Success, "%v", codes(response))
	Equal(codes(response), []int{201, 201, 200, 200, 200, 200, 204}, "codes")
	for place, expected := range map[int]int{2: 100, 3: 200, 4: 33, 5: 4} {
		result := response.OperationResults[place]
		Equal(Item(result.ResourceBody)["n"], expected, "n")
		Equal(string(result.ETag), Item(result.ResourceBody)["_etag"], "etag")
		Check(result.RequestCharge > 0, "no charge")
	}
	Check(response.RequestCharge > 0 && response.SessionToken != "", "no charge or session")
	gone, err := container.ReadItem(account.Context, Key("a"), "5", nil)
	Fails(404, gone, err)
}

func AFailedBatchLeavesNothingBehind(account *Account) {
	container := account.Container()
	account.Create(container, M{"id": "1", "pk": "a", "n": 1})
	stale := azcosmos.TransactionalBatchItemOptions{IfMatchETag: ptr(azcore.ETag(`"stale"`))}
	for _, scene := range []struct {
		expected []int
		define   func(*azcosmos.TransactionalBatch)
	}{
		{[]int{424, 409}, func(batch *azcosmos.TransactionalBatch) {
			batch.CreateItem(numbered(9), nil)
			batch.CreateItem(numbered(9), nil)
		}},
		{[]int{424, 400}, func(batch *azcosmos.TransactionalBatch) {
			batch.CreateItem(numbered(9), nil)
			batch.CreateItem(Bytes(M{"id": "8", "pk": "other"}), nil)
		}},
		{[]int{404, 424}, func(batch *azcosmos.TransactionalBatch) {
			batch.ReadItem("none", nil)
			batch.CreateItem(numbered(9), nil)
		}},
		{[]int{424, 404, 424}, func(batch *azcosmos.TransactionalBatch) {
			batch.UpsertItem(Bytes(M{"id": "1", "pk": "a", "n": 5}), nil)
			batch.DeleteItem("none", nil)
			batch.CreateItem(numbered(9), nil)
		}},
		{[]int{412, 424}, func(batch *azcosmos.TransactionalBatch) {
			batch.ReplaceItem("1", Bytes(M{"id": "1", "pk": "a", "n": 9}), &stale)
			batch.CreateItem(numbered(9), nil)
		}},
	} {
		response := Must(execute(account, container, scene.define))
		Check(!response.Success, "the batch succeeded")
		Equal(codes(response), scene.expected, "codes")
	}
	Equal(account.Rows(container, "SELECT c.id, c.n FROM c", Key("a")), []M{{"id": "1", "n": 1}}, "items")
}

func BatchesAreLimited(account *Account) {
	container := account.Container()
	of := func(count, size int) (azcosmos.TransactionalBatchResponse, error) {
		return execute(account, container, func(batch *azcosmos.TransactionalBatch) {
			for number := range count {
				text := strings.Repeat("x", size)
				batch.UpsertItem(Bytes(M{"id": fmt.Sprint(number), "pk": "a", "text": text}), nil)
			}
		})
	}
	Check(Must(of(100, 1)).Success, "a hundred operations are allowed")
	more, err := of(101, 1)
	Check(strings.Contains(Fails(400, more, err).Error(), "more operations than what is supported"), "%v", err)
	larger, err := of(2, 1_200_000)
	Fails(413, larger, err)
}

func ABatchReadsItsOwnWrites(account *Account) {
	container := account.SeveralPartitions(KeyedBy("/a", "/b"))
	batch := container.NewTransactionalBatch(Key("x", "y"))
	batch.CreateItem(Bytes(M{"id": "1", "a": "x", "b": "y", "n": 1}), nil)
	batch.PatchItem("1", patchOf(func(p *azcosmos.PatchOperations) { p.AppendIncrement("/n", 1) }), nil)
	batch.ReadItem("1", nil)
	response := Must(container.ExecuteTransactionalBatch(account.Context, batch, nil))
	Check(response.Success, "%v", codes(response))
	Equal(Item(response.OperationResults[2].ResourceBody)["n"], 2, "n")
}

func ABatchAnswersWithoutBodiesByDefault(account *Account) {
	container := account.Container()
	client := account.Open(func(options *azcosmos.ClientOptions) { options.EnableContentResponseOnWrite = false })
	terse := Must(client.NewContainer(account.Database.ID(), container.ID()))
	batch := terse.NewTransactionalBatch(Key("a"))
	batch.CreateItem(numbered(1), nil)
	batch.UpsertItem(numbered(2), nil)
	response := Must(terse.ExecuteTransactionalBatch(account.Context, batch, nil))
	Check(response.Success, "%v", codes(response))
	for _, result := range response.OperationResults {
		Equal(len(result.ResourceBody), 0, "bytes that were not asked for")
	}
	Equal(account.Rows(container, "SELECT VALUE c.n FROM c ORDER BY c.n", Key("a")), []int{1, 2}, "items")
}

func ptr[T any](value T) *T { return &value }
