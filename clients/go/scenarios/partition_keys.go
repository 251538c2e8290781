package scenarios

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

// The SDK escapes what lies beyond U+FFFF in a way that is not JSON, so no such character is among them.
var keyValues = []any{
	"", "plain", "with space", `quote " and \ backslash`, "ünïcödé 中文", strings.Repeat("x", 300),
	0, 1, -1, 1.5, -128, 2147483647, 9007199254740992.0, 5e-324, 1.7976931348623157e308, true, false, nil,
}

func everyValueMakesTheRoundTrip(account *Account, container *azcosmos.ContainerClient, values []any) {
	for number, value := range values {
		account.Create(container, M{"id": fmt.Sprintf("item%d", number), "pk": value})
	}
	for number, value := range values {
		id := fmt.Sprintf("item%d", number)
		Equal(account.Read(container, value, id)["pk"], value, "pk")
		Equal(account.Rows(container, "SELECT VALUE c.id FROM c", Key(value)), []string{id}, fmt.Sprint(value))
	}
	found := account.Rows(container, "SELECT VALUE c.id FROM c", Everywhere())
	Equal(len(found), len(values), "items across partitions")
}

func EveryTypeOfValueIsAKey(account *Account) {
	everyValueMakesTheRoundTrip(account, account.SeveralPartitions(), keyValues)
}

func VersionOneKeys(account *Account) {
	container := account.SeveralPartitions(func(properties *azcosmos.ContainerProperties) {
		properties.PartitionKeyDefinition.Version = 1
	})
	everyValueMakesTheRoundTrip(account, container, keyValues)
}

func NestedAndQuotedPathsLeadToTheKey(account *Account) {
	nested := account.Container(KeyedBy("/address/city"))
	Must(nested.CreateItem(account.Context, Key("Basel"),
		Bytes(M{"id": "1", "address": M{"city": "Basel"}}), nil))
	Equal(account.Read(nested, "Basel", "1")["id"], "1", "id")
	quoted := account.Container(KeyedBy(`/"first-level"/"le/vel2"`))
	Must(quoted.CreateItem(account.Context, Key("deep"),
		Bytes(M{"id": "1", "first-level": M{"le/vel2": "deep"}}), nil))
	Equal(account.Read(quoted, "deep", "1")["id"], "1", "id")
}

func HierarchicalKeysAndTheirPrefixes(account *Account) {
	container := account.SeveralPartitions(KeyedBy("/tenant", "/user", "/session"))
	for _, tenant := range []string{"t1", "t2"} {
		for _, user := range []string{"u1", "u2", "u3"} {
			for session := 1; session <= 2; session++ {
				id := fmt.Sprintf("%s%s%d", tenant, user, session)
				body := M{"id": id, "tenant": tenant, "user": user, "session": session}
				Must(container.CreateItem(account.Context, Key(tenant, user, session), Bytes(body), nil))
			}
		}
	}
	read := Must(container.ReadItem(account.Context, Key("t1", "u2", 1), "t1u21", nil))
	Equal(Item(read.Value)["user"], "u2", "user")
	count := func(key azcosmos.PartitionKey) int { return len(account.Rows(container, "SELECT * FROM c", key)) }
	Equal(count(Key("t1")), 6, "items of a tenant")
	Equal(count(Key("t1", "u1")), 2, "items of a user")
	Equal(count(Key("t1", "u1", 1)), 1, "items of a session")
	Equal(count(Key("nobody")), 0, "items of nobody")
	part, err := container.ReadItem(account.Context, Key("t1", "u1"), "t1u11", nil)
	Fails(400, part, err)
	Must(container.DeleteItem(account.Context, Key("t1", "u1", 1), "t1u11", nil))
	Equal(count(Key("t1")), 5, "items of a tenant after a delete")
}

func ALevelOfAHierarchicalKeyMayBeNull(account *Account) {
	container := account.Container(KeyedBy("/a", "/b"))
	Must(container.CreateItem(account.Context, Key("x", nil), Bytes(M{"id": "1", "a": "x", "b": nil}), nil))
	Must(container.CreateItem(account.Context, Key("x", 2), Bytes(M{"id": "2", "a": "x", "b": 2}), nil))
	read := Must(container.ReadItem(account.Context, Key("x", nil), "1", nil))
	Equal(Item(read.Value)["b"], nil, "b")
	Equal(Sorted(account.Rows(container, "SELECT VALUE c.id FROM c", Key("x"))), []string{"1", "2"}, "ids")
}

func AKeyThatDoesNotMatchTheItemIsRefused(account *Account) {
	container := account.Container()
	account.Create(container, M{"id": "1", "pk": "a"})
	read, err := container.ReadItem(account.Context, Key("b"), "1", nil)
	Fails(404, read, err)
	created, err := container.CreateItem(account.Context, Key("b"), Bytes(M{"id": "2", "pk": "a"}), nil)
	refused := Fails(400, created, err)
	Equal(refused.RawResponse.Header.Get("x-ms-substatus"), "1001", "sub-status")
}
