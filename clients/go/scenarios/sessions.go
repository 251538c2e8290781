package scenarios

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

func OneReadsOnesOwnWrites(account *Account) {
	container := account.SeveralPartitions()
	for number := range 20 {
		key := fmt.Sprintf("k%d", number)
		account.Create(container, M{"id": "1", "pk": key, "n": 0})
		account.Upsert(container, M{"id": "1", "pk": key, "n": number})
		Equal(account.Read(container, key, "1")["n"], number, "n")
	}
}

func ATokenMayBeHandedToAnotherClient(account *Account) {
	container := account.Container()
	created := Must(container.CreateItem(account.Context, Key("a"), Bytes(M{"id": "1", "pk": "a"}), nil))
	theirs := Must(account.Open().NewContainer(account.Database.ID(), container.ID()))
	Must(theirs.ReadItem(account.Context, Key("a"), "1", &azcosmos.ItemOptions{SessionToken: created.SessionToken}))
	page := Must(theirs.NewQueryItemsPager("SELECT * FROM c", Key("a"),
		&azcosmos.QueryOptions{SessionToken: created.SessionToken}).NextPage(account.Context))
	Equal(len(page.Items), 1, "items")
	Must(theirs.ReadManyItems(account.Context, []azcosmos.ItemIdentity{{ID: "1", PartitionKey: Key("a")}},
		&azcosmos.ReadManyItemsOptions{SessionToken: created.SessionToken}))
}

func ATokenFromTheFutureIsNotServed(account *Account) {
	container := account.Container()
	created := Must(container.CreateItem(account.Context, Key("a"), Bytes(M{"id": "1", "pk": "a"}), nil))
	parts := strings.Split(*created.SessionToken, "#")
	parts[1] = strconv.Itoa(Must(strconv.Atoi(parts[1])) + 1_000_000)
	future := azcosmos.ItemOptions{SessionToken: to.Ptr(strings.Join(parts, "#"))}
	read, err := container.ReadItem(account.Context, Key("a"), "1", &future)
	Equal(Fails(404, read, err).RawResponse.Header.Get("x-ms-substatus"), "1002", "sub-status")
}

func ItemsExpireAfterTheContainersDefault(account *Account) {
	container := account.Container(func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = to.Ptr(int32(2)) })
	account.Create(container, M{"id": "short", "pk": "a"})
	account.Create(container, M{"id": "forever", "pk": "a", "ttl": -1})
	account.Create(container, M{"id": "long", "pk": "a", "ttl": 1000})
	time.Sleep(3200 * time.Millisecond)
	gone, err := container.ReadItem(account.Context, Key("a"), "short", nil)
	Fails(404, gone, err)
	Equal(account.Rows(container, "SELECT VALUE c.id FROM c ORDER BY c.id", Key("a")), []string{"forever", "long"}, "ids")
	account.Create(container, M{"id": "short", "pk": "a"})
	refused, err := container.CreateItem(account.Context, Key("a"), Bytes(M{"id": "bad", "pk": "a", "ttl": 0}), nil)
	Fails(400, refused, err)
}
