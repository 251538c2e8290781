package scenarios

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

var families = []M{
	{
		"id": "1", "pk": "a", "n": 5, "name": "Ann", "tags": []string{"x", "y"}, "address": M{"city": "Oslo"},
		"children": []M{{"n": "A", "age": 3}, {"n": "B", "age": 9}},
	},
	{
		"id": "2", "pk": "a", "n": 2, "name": "bob", "tags": []string{}, "address": M{"city": "Rome"},
		"children": []M{{"n": "C", "age": 12}},
	},
	{"id": "3", "pk": "a", "n": 9, "name": "Cid", "tags": []string{"y"}, "address": M{"city": "Oslo"}},
	{"id": "4", "pk": "a", "n": nil, "name": "Dee"},
	{"id": "5", "pk": "a", "name": "Eve", "n": "text"},
}

// Rows in order; parameters as name, value, name, value.
var inOnePartition = []struct {
	query      string
	parameters []any
	expected   any
}{
	{"SELECT VALUE c.id FROM c WHERE c.n > 2 ORDER BY c.n", nil, []string{"1", "3"}},
	{
		"SELECT VALUE c.id FROM c WHERE c.n >= @low AND c.n <= @high ORDER BY c.n DESC",
		[]any{"@low", 2, "@high", 5}, []string{"1", "2"},
	},
	{"SELECT VALUE c.id FROM c WHERE c.n IN (2, 9, 'text') ORDER BY c.id", nil, []string{"2", "3", "5"}},
	{
		"SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(@ids, c.id) ORDER BY c.id",
		[]any{"@ids", []string{"1", "4"}}, []string{"1", "4"},
	},
	{"SELECT VALUE c.id FROM c WHERE c.name LIKE '%e%' ORDER BY c.id", nil, []string{"4", "5"}},
	{"SELECT VALUE c.id FROM c WHERE STARTSWITH(c.name, 'a', true)", nil, []string{"1"}},
	{"SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.children) ORDER BY c.id", nil, []string{"3", "4", "5"}},
	{"SELECT VALUE c.id FROM c WHERE IS_NULL(c.n)", nil, []string{"4"}},
	{"SELECT c.id, c.address.city FROM c WHERE c.id = '2'", nil, []M{{"id": "2", "city": "Rome"}}},
	{"SELECT TOP 2 VALUE c.id FROM c ORDER BY c.id DESC", nil, []string{"5", "4"}},
	{"SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 1 LIMIT 2", nil, []string{"2", "3"}},
	{"SELECT DISTINCT VALUE c.address.city FROM c ORDER BY c.address.city", nil, []string{"Oslo", "Rome"}},
	{
		"SELECT c.id, k.n FROM c JOIN k IN c.children WHERE k.age > 5 ORDER BY c.id", nil,
		[]M{{"id": "1", "n": "B"}, {"id": "2", "n": "C"}},
	},
	{"SELECT VALUE k.n FROM k IN c.children", nil, []string{"A", "B", "C"}},
	{
		"SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE k FROM k IN c.children WHERE k.age < 5)", nil,
		[]string{"1"},
	},
	{"SELECT VALUE COUNT(1) FROM c", nil, []int{5}},
	{"SELECT VALUE SUM(c.n) FROM c WHERE IS_NUMBER(c.n)", nil, []int{16}},
	{
		"SELECT COUNT(1) AS n, MIN(c.id) AS low, MAX(c.id) AS high FROM c", nil,
		[]M{{"n": 5, "low": "1", "high": "5"}},
	},
	{
		"SELECT c.address.city, COUNT(1) AS n FROM c WHERE IS_DEFINED(c.address) GROUP BY c.address.city", nil,
		[]M{{"city": "Oslo", "n": 2}, {"city": "Rome", "n": 1}},
	},
	{"SELECT VALUE c.nothing ?? c.id FROM c WHERE c.id = '1'", nil, []string{"1"}},
	{"SELECT VALUE DateTimePart('year', '2024-05-06T07:08:09Z')", nil, []int{2024}},
}

func QueriesInOnePartition(account *Account) {
	container := account.SeveralPartitions()
	for _, family := range families {
		account.Create(container, family)
	}
	wrong := []string{}
	for _, scene := range inOnePartition {
		found, err := account.Query(container, scene.query, Key("a"), scene.parameters...)
		if strings.Contains(scene.query, "GROUP BY") {
			Sorted(found)
		}
		if err != nil || string(Bytes(found)) != string(Bytes(scene.expected)) {
			wrong = append(wrong, fmt.Sprintf("%s: expected %v, found %v %v", scene.query, scene.expected, found, err))
		}
	}
	Check(len(wrong) == 0, "%s", strings.Join(wrong, "\n  "))
}

func filled(account *Account, count, keys int) *azcosmos.ContainerClient {
	container := account.SeveralPartitions()
	for number := range count {
		account.Create(container, M{
			"id": fmt.Sprintf("%03d", number), "pk": fmt.Sprintf("k%d", number%keys), "n": number,
			"list": []int{number, -number},
		})
	}
	return container
}

// The SDK asks for no plan: the gateway serves what needs no merging, and refuses the rest.
func FiltersAndProjectionsAcrossPartitions(account *Account) {
	container := filled(account, 60, 20)
	rows := func(query string, parameters ...any) []any {
		return Sorted(account.Rows(container, query, Everywhere(), parameters...))
	}
	Equal(len(rows("SELECT * FROM c")), 60, "items")
	Equal(rows("SELECT VALUE c.n FROM c WHERE c.n < @most", "@most", 3), []int{0, 1, 2}, "small ones")
	Equal(rows("SELECT VALUE c.n FROM c WHERE c.n IN (1, 20, 59, 60)"), []int{1, 20, 59}, "listed ones")
	Equal(rows("SELECT c.n, UPPER(c.pk) AS k FROM c WHERE c.id = '007'"), []M{{"n": 7, "k": "K7"}}, "projection")
	Equal(rows("SELECT VALUE x FROM c JOIN x IN c.list WHERE c.n = 5"), []int{-5, 5}, "joined")
	Equal(rows("SELECT VALUE c.n FROM c WHERE c.pk = 'k3'"), []int{3, 23, 43}, "of one key")
	Equal(rows("SELECT * FROM c WHERE false"), []int{}, "nothing")
	for _, query := range []string{
		"SELECT * FROM c ORDER BY c.n",
		"SELECT VALUE COUNT(1) FROM c",
		"SELECT DISTINCT VALUE c.pk FROM c",
		"SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk",
		"SELECT TOP 2 * FROM c ORDER BY c.n",
		"SELECT * FROM c OFFSET 1 LIMIT 2",
	} {
		refused, err := account.Query(container, query, Everywhere())
		Fails(400, refused, err)
	}
}

func PagesResume(account *Account) {
	container := filled(account, 50, 1)
	everywhere := filled(account, 50, 17)
	for _, scene := range []struct {
		container *azcosmos.ContainerClient
		query     string
		key       azcosmos.PartitionKey
		size      int32
		ordered   bool
	}{
		{container, "SELECT VALUE c.n FROM c", Key("k0"), 3, false},
		{container, "SELECT VALUE c.n FROM c ORDER BY c.n", Key("k0"), 7, true},
		{everywhere, "SELECT VALUE c.n FROM c", Everywhere(), 5, false},
	} {
		seen, pages := []any{}, 0
		options := azcosmos.QueryOptions{PageSizeHint: scene.size}
		for {
			// A new pager for every page, from the token of the last one.
			page := Must(scene.container.NewQueryItemsPager(scene.query, scene.key, &options).NextPage(account.Context))
			Check(len(page.Items) <= int(scene.size), "a page of %d", len(page.Items))
			Check(page.RequestCharge > 0, "a page without a charge")
			for _, row := range page.Items {
				seen = append(seen, Value(row))
			}
			pages++
			Check(pages < 100, "the continuation never ends")
			if page.ContinuationToken == nil || *page.ContinuationToken == "" {
				break
			}
			options.ContinuationToken = page.ContinuationToken
		}
		Check(pages >= 50/int(scene.size), "%d pages", pages)
		if !scene.ordered {
			Sorted(seen)
		}
		Equal(seen, Numbers(0, 50), scene.query)
	}
}

func ABadContinuationIsRefused(account *Account) {
	container := filled(account, 3, 1)
	options := azcosmos.QueryOptions{ContinuationToken: to.Ptr("no-such-token")}
	page, err := container.NewQueryItemsPager("SELECT * FROM c", Key("k0"), &options).NextPage(account.Context)
	Check(strings.Contains(Fails(400, page, err).Error(), "Invalid Continuation Token"), "%v", err)
}

func LargeResponsesAreSplitIntoPages(account *Account) {
	container := account.Container()
	for number := range 8 {
		account.Create(container, M{"id": fmt.Sprint(number), "pk": "a", "text": strings.Repeat("x", 1_000_000)})
	}
	pages := Must(Pages(account.Context, container.NewQueryItemsPager("SELECT * FROM c", Key("a"), nil)))
	items := 0
	for _, page := range pages {
		items += len(page.Items)
	}
	Equal(items, 8, "items")
	Check(len(pages) >= 2, "8 MB came in one page")
}

func QueriesReportMetrics(account *Account) {
	container := account.Container()
	for _, family := range families {
		account.Create(container, family)
	}
	options := azcosmos.QueryOptions{
		PopulateIndexMetrics: true, EnableScanInQuery: true, ResponseContinuationTokenLimitInKB: 1,
		ConsistencyLevel: azcosmos.ConsistencyLevelEventual.ToPtr(),
	}
	page := Must(container.NewQueryItemsPager("SELECT * FROM c WHERE c.n > 1", Key("a"), &options).
		NextPage(account.Context))
	Equal(len(page.Items), 3, "rows")
	Check(page.QueryMetrics != nil && strings.Contains(*page.QueryMetrics, "outputDocumentCount=3"), "no metrics")
	Check(page.IndexMetrics != nil, "no index metrics")
	metrics := string(Must(base64.StdEncoding.DecodeString(*page.IndexMetrics)))
	Check(strings.Contains(metrics, "/n/?"), "index metrics: %s", metrics)
}

func BadQueriesAreRefused(account *Account) {
	container := account.SeveralPartitions()
	for _, query := range []string{
		"SELECT * frm c", "nonsense", "SELECT NOFUNCTION(c.a) FROM c", "SELECT LEFT(c.a) FROM c",
		"SELECT x.a FROM c", "SELECT * FROM c WHERE c.a = 'open", "SELECT TOP -1 * FROM c",
	} {
		for _, key := range []azcosmos.PartitionKey{Key("a"), Everywhere()} {
			rows, err := account.Query(container, query, key)
			Fails(400, rows, err)
		}
	}
	rows, err := account.Query(container, "SELECT * frm c", Key("a"))
	Check(strings.Contains(Fails(400, rows, err).Error(), "SC1001"), "%v", err)
}
