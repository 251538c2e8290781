package scenarios

import (
	"fmt"
	"sort"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

func ItemsAreCreatedReadReplacedUpsertedAndDeleted(account *Account) {
	container := account.Container()
	created := account.Create(container, M{"id": "1", "pk": "a", "n": 1})
	for _, member := range []string{"_rid", "_self", "_etag", "_attachments", "_ts"} {
		Check(created[member] != nil, "no %s in %v", member, created)
	}
	Equal(account.Read(container, "a", "1"), created, "item")
	replaced := Item(Must(container.ReplaceItem(
		account.Context, Key("a"), "1", Bytes(M{"id": "1", "pk": "a", "n": 2}), nil)).Value)
	Equal(replaced["n"], 2, "n")
	Equal(replaced["_rid"], created["_rid"], "_rid")
	Check(replaced["_etag"] != created["_etag"], "a replace must change the _etag")
	Equal(account.Upsert(container, M{"id": "1", "pk": "a", "n": 3})["_rid"], created["_rid"], "_rid")
	Check(account.Upsert(container, M{"id": "2", "pk": "a"})["_rid"] != created["_rid"], "two items share a _rid")

	deleted := Must(container.DeleteItem(account.Context, Key("a"), "1", nil))
	Equal(deleted.RawResponse.StatusCode, 204, "status")
	gone, err := container.ReadItem(account.Context, Key("a"), "1", nil)
	Fails(404, gone, err)
	gone, err = container.DeleteItem(account.Context, Key("a"), "1", nil)
	Fails(404, gone, err)
	gone, err = container.ReplaceItem(account.Context, Key("a"), "1", Bytes(M{"id": "1", "pk": "a"}), nil)
	Fails(404, gone, err)
	Equal(account.Rows(container, "SELECT VALUE c.id FROM c", Key("a")), []string{"2"}, "ids")
}

func AnIdIsTakenOncePerKey(account *Account) {
	container := account.Container()
	account.Create(container, M{"id": "1", "pk": "a"})
	account.Create(container, M{"id": "1", "pk": "b"})
	again, err := container.CreateItem(account.Context, Key("a"), Bytes(M{"id": "1", "pk": "a"}), nil)
	Check(strings.Contains(Fails(409, again, err).Error(), "Conflict"), "%v", err)
}

func AReplaceMayRename(account *Account) {
	container := account.Container()
	created := account.Create(container, M{"id": "old", "pk": "a"})
	account.Create(container, M{"id": "taken", "pk": "a"})
	Must(container.ReplaceItem(account.Context, Key("a"), "old", Bytes(M{"id": "new", "pk": "a"}), nil))
	Equal(account.Read(container, "a", "new")["_rid"], created["_rid"], "_rid")
	old, err := container.ReadItem(account.Context, Key("a"), "old", nil)
	Fails(404, old, err)
	taken, err := container.ReplaceItem(account.Context, Key("a"), "new", Bytes(M{"id": "taken", "pk": "a"}), nil)
	Fails(409, taken, err)
}

func IdsMayHoldAnyAllowedCharacter(account *Account) {
	container := account.Container()
	wanted := []string{
		"with space", "中文😀", "a+b%c", "per%20cent", "x=1&y=2", ":colon;", `quote'"`, "~`!@$^*()[]{}|", "trailing.",
	}
	for _, id := range wanted {
		account.Create(container, M{"id": id, "pk": "a"})
	}
	for _, id := range wanted {
		Equal(account.Read(container, "a", id)["id"], id, "id")
		Must(container.ReplaceItem(account.Context, Key("a"), id, Bytes(M{"id": id, "pk": "a", "n": 1}), nil))
	}
	sort.Strings(wanted)
	Equal(account.Rows(container, "SELECT VALUE c.id FROM c ORDER BY c.id", Key("a")), wanted, "ids")
	for _, id := range wanted {
		Must(container.DeleteItem(account.Context, Key("a"), id, nil))
	}
}

func IdsAreLimited(account *Account) {
	container := account.Container()
	account.Create(container, M{"id": strings.Repeat("i", 1023), "pk": "a"})
	for _, id := range []string{strings.Repeat("i", 1025), ""} {
		refused, err := container.CreateItem(account.Context, Key("a"), Bytes(M{"id": id, "pk": "a"}), nil)
		Fails(400, refused, err)
	}
	missing, err := container.CreateItem(account.Context, Key("a"), Bytes(M{"pk": "a"}), nil)
	Fails(400, missing, err)
}

func ValuesKeepTheirTypeAndOrder(account *Account) {
	container := account.Container()
	body := `{"id":"1","pk":"a","zebra":1,"apple":2,"int":9007199254740991,"negative":-9007199254740991,` +
		`"float":0.1,"tiny":5e-324,"text":"tab\t quote\" back\\ é 中 😀","empty":{},"none":[],"null":null,` +
		`"yes":true,"no":false,"deep":{"a":[{"b":[[1,[2,{"c":null}]]]}]}`
	Must(container.CreateItem(account.Context, Key("a"), []byte(body+"}"), nil))
	found := string(Must(container.ReadItem(account.Context, Key("a"), "1", nil)).Value)
	Check(strings.HasPrefix(found, body+","), "%s", found)
}

func ResponsesCarryChargeSessionAndEtag(account *Account) {
	container := account.Container()
	created := Must(container.CreateItem(account.Context, Key("a"), Bytes(M{"id": "1", "pk": "a"}), nil))
	Check(created.RequestCharge > 0, "no charge")
	Check(created.SessionToken != nil && *created.SessionToken != "", "no session token")
	Check(created.ActivityID != "", "no activity id")
	Equal(string(created.ETag), Item(created.Value)["_etag"], "etag")
	read := Must(container.ReadItem(account.Context, Key("a"), "1", nil))
	Equal(read.RequestCharge, 1, "charge of a small read")
	diagnostics := read.Diagnostics
	Check(diagnostics.ClientElapsedTime() > 0 && diagnostics.FailedRequestCount() == 0, "%s", diagnostics)
	Check(strings.Contains(diagnostics.String(), "200"), "%s", diagnostics)
}

func WritesAnswerWithoutABodyByDefault(account *Account) {
	container := account.Container()
	client := account.Open(func(options *azcosmos.ClientOptions) { options.EnableContentResponseOnWrite = false })
	terse := Must(client.NewContainer(account.Database.ID(), container.ID()))
	patch := azcosmos.PatchOperations{}
	patch.AppendIncrement("/n", 1)
	for _, response := range []azcosmos.ItemResponse{
		Must(terse.CreateItem(account.Context, Key("a"), Bytes(M{"id": "1", "pk": "a"}), nil)),
		Must(terse.UpsertItem(account.Context, Key("a"), Bytes(M{"id": "1", "pk": "a", "n": 1}), nil)),
		Must(terse.ReplaceItem(account.Context, Key("a"), "1", Bytes(M{"id": "1", "pk": "a", "n": 2}), nil)),
		Must(terse.PatchItem(account.Context, Key("a"), "1", patch, nil)),
	} {
		Equal(len(response.Value), 0, "bytes")
		Check(response.ETag != "", "no etag")
	}
	Equal(account.Read(container, "a", "1")["n"], 3, "n")
	full := azcosmos.ItemOptions{EnableContentResponseOnWrite: true}
	wordy := Must(terse.UpsertItem(account.Context, Key("a"), Bytes(M{"id": "1", "pk": "a", "n": 4}), &full))
	Equal(Item(wordy.Value)["n"], 4, "n")
}

func AnItemMayBeTwoMegabytesAndNoMore(account *Account) {
	container := account.Container()
	size := 2*1024*1024 - 1000
	account.Create(container, M{"id": "big", "pk": "a", "text": strings.Repeat("x", size)})
	Equal(len(account.Read(container, "a", "big")["text"].(string)), size, "length")
	bigger := Bytes(M{"id": "bigger", "pk": "a", "text": strings.Repeat("x", 2*1024*1024)})
	refused, err := container.CreateItem(account.Context, Key("a"), bigger, nil)
	Fails(413, refused, err)
}

func UniqueKeysHoldWithinALogicalPartition(account *Account) {
	container := account.Container(func(properties *azcosmos.ContainerProperties) {
		properties.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{
			UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/email"}}},
		}
	})
	account.Create(container, M{"id": "1", "pk": "a", "email": "x@y"})
	account.Create(container, M{"id": "1", "pk": "b", "email": "x@y"})
	second := Bytes(M{"id": "2", "pk": "a", "email": "x@y"})
	refused, err := container.CreateItem(account.Context, Key("a"), second, nil)
	Fails(409, refused, err)
	Must(container.DeleteItem(account.Context, Key("a"), "1", nil))
	Must(container.CreateItem(account.Context, Key("a"), second, nil))
}

func AStaleEtagRefusesTheWrite(account *Account) {
	container := account.Container()
	first := Must(container.CreateItem(account.Context, Key("a"), Bytes(M{"id": "1", "pk": "a", "n": 1}), nil))
	body := Bytes(M{"id": "1", "pk": "a", "n": 2})
	fresh := func(etag azcore.ETag) *azcosmos.ItemOptions { return &azcosmos.ItemOptions{IfMatchEtag: &etag} }
	second := Must(container.ReplaceItem(account.Context, Key("a"), "1", body, fresh(first.ETag)))
	stale := fresh(first.ETag)
	patch := azcosmos.PatchOperations{}
	patch.AppendSet("/n", 9)
	response, err := container.ReplaceItem(account.Context, Key("a"), "1", body, stale)
	Fails(412, response, err)
	response, err = container.UpsertItem(account.Context, Key("a"), body, stale)
	Fails(412, response, err)
	response, err = container.DeleteItem(account.Context, Key("a"), "1", stale)
	Fails(412, response, err)
	response, err = container.PatchItem(account.Context, Key("a"), "1", patch, stale)
	Fails(412, response, err)
	Equal(account.Read(container, "a", "1")["n"], 2, "n")
	Must(container.DeleteItem(account.Context, Key("a"), "1", fresh(second.ETag)))
}

func EveryOptionOfARequestIsTaken(account *Account) {
	container := account.Container()
	options := azcosmos.ItemOptions{
		ConsistencyLevel:             azcosmos.ConsistencyLevelEventual.ToPtr(),
		IndexingDirective:            azcosmos.IndexingDirectiveInclude.ToPtr(),
		PriorityLevel:                to.Ptr(azcosmos.PriorityLevelLow),
		ThroughputBucket:             to.Ptr(int32(1)),
		EnableContentResponseOnWrite: true,
		DedicatedGatewayRequestOptions: &azcosmos.DedicatedGatewayRequestOptions{
			BypassIntegratedCache: true,
		},
	}
	Must(container.CreateItem(account.Context, Key("a"), Bytes(M{"id": "1", "pk": "a"}), &options))
	Must(container.ReadItem(account.Context, Key("a"), "1", &options))
	strong := azcosmos.ItemOptions{ConsistencyLevel: azcosmos.ConsistencyLevelStrong.ToPtr()}
	refused, err := container.ReadItem(account.Context, Key("a"), "1", &strong)
	Fails(400, refused, err)
}

func ManyItemsAreReadAtOnce(account *Account) {
	container := account.SeveralPartitions()
	wanted, expected := []azcosmos.ItemIdentity{}, []any{}
	for number := range 120 {
		id, key := fmt.Sprint(number), fmt.Sprintf("k%d", number%10)
		account.Create(container, M{"id": id, "pk": key})
		if number%2 == 0 {
			wanted = append(wanted, azcosmos.ItemIdentity{ID: id, PartitionKey: Key(key)})
			expected = append(expected, id)
		}
	}
	wanted = append(wanted, azcosmos.ItemIdentity{ID: "none", PartitionKey: Key("k1")},
		azcosmos.ItemIdentity{ID: "1", PartitionKey: Key("wrong")})
	found := Must(container.ReadManyItems(account.Context, wanted, nil))
	Equal(IDs(found.Items), Sorted(expected), "ids")
	Check(found.RequestCharge > 0, "no charge")
	Equal(len(Must(container.ReadManyItems(account.Context, nil, nil)).Items), 0, "items of nothing")

	nested := account.SeveralPartitions(KeyedBy("/a", "/b"))
	wanted = nil
	for number := range 20 {
		key := Key(fmt.Sprintf("a%d", number%3), number)
		body := M{"id": fmt.Sprint(number), "a": fmt.Sprintf("a%d", number%3), "b": number}
		Must(nested.CreateItem(account.Context, key, Bytes(body), nil))
		wanted = append(wanted, azcosmos.ItemIdentity{ID: fmt.Sprint(number), PartitionKey: key})
	}
	Equal(len(Must(nested.ReadManyItems(account.Context, wanted, nil)).Items), 20, "items by hierarchical key")
}
