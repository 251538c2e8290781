package scenarios

import (
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

const regionItems = 10

// nearClient is a filled container as a client that reads in the second region sees it, and elsewhere if it has to.
func nearClient(account *Account, regions []string) *azcosmos.ContainerClient {
	container := account.Container()
	for number := range regionItems {
		account.Create(container, M{"id": fmt.Sprint(number), "pk": fmt.Sprintf("k%d", number), "n": number})
	}
	client := account.Open(func(options *azcosmos.ClientOptions) {
		options.PreferredRegions = []string{regions[1], regions[2], regions[0]}
	})
	near := Must(client.NewContainer(account.Database.ID(), container.ID()))
	readsEverything(account, near)
	return near
}

func readsEverything(account *Account, container *azcosmos.ContainerClient) {
	for number := range regionItems {
		Equal(untilItArrives(account, container, number)["n"], number, "n")
	}
	Equal(len(account.Rows(container, "SELECT * FROM c", Everywhere())), regionItems, "items")
}

// untilItArrives waits for replication: regions are a few milliseconds apart, and another client wrote the item.
func untilItArrives(account *Account, container *azcosmos.ContainerClient, number int) M {
	for attempt := 0; ; attempt++ {
		read, err := container.ReadItem(account.Context, Key(fmt.Sprintf("k%d", number)), fmt.Sprint(number), nil)
		var refused *azcore.ResponseError
		if err == nil {
			return Item(read.Value)
		}
		Check(errors.As(err, &refused) && refused.StatusCode == 404 && attempt < 50, "%v", err)
		time.Sleep(20 * time.Millisecond)
	}
}

func RegionsDownAreLeftForTheNextPreferredOne(account *Account) {
	regions := Regions()
	if len(regions) < 3 {
		return
	}
	for _, as := range []string{"refused", "unavailable"} {
		container := nearClient(account, regions)
		During(regions[1], "down", M{"as": as}, func() {
			readsEverything(account, container)
			account.Upsert(container, M{"id": "0", "pk": "k0", "n": 0})
		})
		readsEverything(account, container)
	}
}

func RegionsThatDrainAreLeft(account *Account) {
	regions := Regions()
	if len(regions) < 3 {
		return
	}
	container := nearClient(account, regions)
	During(regions[1], "drain", nil, func() {
		readsEverything(account, container)
		account.Upsert(container, M{"id": "0", "pk": "k0", "n": 0})
	})
	readsEverything(account, container)
}

func RegionsFailOverAndWritesFollow(account *Account) {
	regions := Regions()
	if len(regions) < 3 {
		return
	}
	container := nearClient(account, regions)
	defer ChangeRegion(regions[0], "failover", nil)
	for round, region := range []string{regions[1], regions[2], regions[0]} {
		ChangeRegion(region, "failover", nil)
		account.Upsert(container, M{"id": "0", "pk": "k0", "n": 0, "round": round})
	}
	readsEverything(account, container)
}
