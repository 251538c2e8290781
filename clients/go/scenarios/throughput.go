package scenarios

import (
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

func manual(response azcosmos.ThroughputResponse) any {
	value, present := response.ThroughputProperties.ManualThroughput()
	Check(present, "the throughput is not manual")
	return value
}

func most(response azcosmos.ThroughputResponse) any {
	value, present := response.ThroughputProperties.AutoscaleMaxThroughput()
	Check(present, "the throughput is not autoscale")
	return value
}

func ThroughputIsReadAndReplaced(account *Account) {
	container := account.ContainerWith(azcosmos.NewManualThroughputProperties(1000))
	found := Must(container.ReadThroughput(account.Context, nil))
	Equal(manual(found), 1000, "throughput")
	Check(found.MinThroughput != nil && *found.MinThroughput >= 400, "no minimum")
	replaced := Must(container.ReplaceThroughput(account.Context, azcosmos.NewManualThroughputProperties(1200), nil))
	Equal(manual(replaced), 1200, "throughput")
	Equal(manual(Must(container.ReadThroughput(account.Context, nil))), 1200, "throughput")
	refused, err := container.ReplaceThroughput(account.Context, azcosmos.NewManualThroughputProperties(350), nil)
	Fails(400, refused, err)
	stale := azcore.ETag(`"stale"`)
	kept, err := container.ReplaceThroughput(account.Context, azcosmos.NewManualThroughputProperties(1300),
		&azcosmos.ThroughputOptions{IfMatchEtag: &stale})
	Fails(412, kept, err)
}

func AutoscaleIsReadAndReplaced(account *Account) {
	container := account.ContainerWith(azcosmos.NewAutoscaleThroughputPropertiesWithIncrement(5000, 3))
	found := Must(container.ReadThroughput(account.Context, nil))
	Equal(most(found), 5000, "largest throughput")
	increment, _ := found.ThroughputProperties.AutoscaleIncrement()
	Equal(increment, 3, "increment")
	Equal(most(Must(container.ReplaceThroughput(account.Context,
		azcosmos.NewAutoscaleThroughputProperties(7000), nil))), 7000, "largest throughput")
}

func DatabasesMayHaveThroughput(account *Account) {
	offer := azcosmos.NewManualThroughputProperties(800)
	wanted := azcosmos.DatabaseProperties{ID: Name("db")}
	Must(account.Client.CreateDatabase(account.Context, wanted,
		&azcosmos.CreateDatabaseOptions{ThroughputProperties: &offer}))
	database := Must(account.Client.NewDatabase(wanted.ID))
	Equal(manual(Must(database.ReadThroughput(account.Context, nil))), 800, "throughput")
	Equal(manual(Must(database.ReplaceThroughput(account.Context,
		azcosmos.NewManualThroughputProperties(900), nil))), 900, "throughput")
	Must(database.Delete(account.Context, nil))
	none, err := account.Database.ReadThroughput(account.Context, nil)
	Check(err != nil, "a database without throughput has %v", none)
}

func MoreThroughputLeavesEverythingInPlace(account *Account) {
	container := account.Container()
	for number := range 60 {
		account.Create(container, M{"id": fmt.Sprint(number), "pk": fmt.Sprintf("k%d", number), "n": number})
	}
	Equal(len(Must(container.ReadFeedRanges(account.Context, nil))), 1, "ranges at 400 RU/s")
	options := azcosmos.QueryOptions{PageSizeHint: 20}
	first := Must(container.NewQueryItemsPager("SELECT VALUE c.n FROM c", Everywhere(), &options).
		NextPage(account.Context))
	Must(container.ReplaceThroughput(account.Context, azcosmos.NewManualThroughputProperties(25000), nil))
	for Must(container.ReadThroughput(account.Context, nil)).IsReplacePending {
	}
	Equal(account.Read(container, "k7", "7")["n"], 7, "n")
	Equal(Sorted(account.Rows(container, "SELECT VALUE c.n FROM c", Everywhere())), Numbers(0, 60), "items")
	options.ContinuationToken = first.ContinuationToken
	seen := []any{}
	for _, page := range append([]azcosmos.QueryItemsResponse{first},
		Must(Pages(account.Context, container.NewQueryItemsPager("SELECT VALUE c.n FROM c", Everywhere(), &options)))...) {
		for _, row := range page.Items {
			seen = append(seen, Value(row))
		}
	}
	Equal(Sorted(seen), Numbers(0, 60), "items read before and after")
}

// More than the throughput allows. `clients/run` also runs this where it is enforced (PERI_RU=enforce).
func ThrottlingOfALargeLoadIsWaitedOutByTheSdk(account *Account) {
	created := account.Container()
	// Three retries are the default of this SDK, nine of the others.
	client := account.Open(func(options *azcosmos.ClientOptions) { options.Retry.MaxRetries = 9 })
	container := Must(client.NewContainer(account.Database.ID(), created.ID()))
	const count = 200 // about 6 RU each: three seconds' worth of 400 RU/s
	var group sync.WaitGroup
	failures := make(chan error, count)
	gate := make(chan struct{}, 20)
	for number := range count {
		group.Add(1)
		go func() {
			defer group.Done()
			gate <- struct{}{}
			defer func() { <-gate }()
			key := fmt.Sprintf("k%d", number)
			if _, err := container.UpsertItem(account.Context, Key(key), Bytes(M{"id": key, "pk": key}), nil); err != nil {
				failures <- err
			}
		}()
	}
	group.Wait()
	close(failures)
	for failure := range failures {
		panic(failure)
	}
	Equal(len(account.Rows(container, "SELECT VALUE c.id FROM c", Everywhere())), count, "items")
}

func ThrottlingTellsTheImpatientHowLongToWait(account *Account) {
	if os.Getenv("PERI_RU") != "enforce" {
		return
	}
	container := account.Container()
	impatient := account.Open(func(options *azcosmos.ClientOptions) { options.Retry.MaxRetries = -1 })
	same := Must(impatient.NewContainer(account.Database.ID(), container.ID()))
	batch := same.NewTransactionalBatch(Key("a"))
	for number := range 100 {
		batch.UpsertItem(Bytes(M{"id": fmt.Sprint(number), "pk": "a"}), nil)
	}
	spent := Must(same.ExecuteTransactionalBatch(account.Context, batch, nil)).RequestCharge
	Check(spent > 500, "a hundred writes cost %v RU", spent)
	read, err := same.ReadItem(account.Context, Key("a"), "1", nil)
	headers := Fails(429, read, err).RawResponse.Header
	Equal(headers.Get("x-ms-substatus"), "3200", "sub-status")
	wait := Must(strconv.Atoi(headers.Get("x-ms-retry-after-ms")))
	Check(0 < wait && wait < 2000, "%d ms for %v RU", wait, spent)
	// The container's other client waits by itself.
	Equal(account.Read(container, "a", "1")["id"], "1", "id")
}
