package scenarios

import (
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

// drain reads the feed until it has nothing new, and gives the changes and the token after them.
func drain(account *Account, container *azcosmos.ContainerClient, options azcosmos.ChangeFeedOptions) ([][]byte, string) {
	changes, idle := [][]byte{}, 0
	for pages := 0; ; pages++ {
		page := Must(container.ReadChangeFeed(account.Context, &options))
		changes = append(changes, page.Items...)
		token := page.ContinuationToken
		Check(token != "", "a page of the feed without a continuation")
		options = azcosmos.ChangeFeedOptions{
			Continuation: &token, MaxItemCount: options.MaxItemCount,
			FeedRange: options.FeedRange,
		}
		// A token goes through the ranges one after the other: an empty page may have full ones after it.
		if len(page.Items) > 0 {
			idle = 0
		} else if idle++; idle > 8 {
			return changes, token
		}
		Check(pages < 200, "the feed never ends")
	}
}

func TheFeedOfEachRangeResumes(account *Account) {
	container := account.SeveralPartitions()
	expected := []any{}
	for number := range 30 {
		account.Create(container, M{"id": fmt.Sprint(number), "pk": fmt.Sprintf("k%d", number%7)})
		expected = append(expected, fmt.Sprint(number))
	}
	ranges := Must(container.ReadFeedRanges(account.Context, nil))
	Equal(ranges[0].MinInclusive, "", "first bound")
	Equal(ranges[len(ranges)-1].MaxExclusive, "FF", "last bound")
	seen, tokens := [][]byte{}, []string{}
	for place := range ranges {
		if place > 0 {
			Equal(ranges[place].MinInclusive, ranges[place-1].MaxExclusive, "a gap between ranges")
		}
		changes, token := drain(account, container, azcosmos.ChangeFeedOptions{FeedRange: &ranges[place], MaxItemCount: 3})
		seen, tokens = append(seen, changes...), append(tokens, token)
	}
	Equal(IDs(seen), Sorted(expected), "changes from the beginning")

	account.Upsert(container, M{"id": "3", "pk": "k3", "n": 1})
	account.Create(container, M{"id": "new", "pk": "k1"})
	seen = nil
	for place := range ranges {
		changes, _ := drain(account, container, azcosmos.ChangeFeedOptions{
			FeedRange: &ranges[place], Continuation: &tokens[place],
		})
		seen = append(seen, changes...)
	}
	Equal(IDs(seen), []string{"3", "new"}, "changes after the token")
}

func TheFeedShowsEachItemOnceAtItsNewest(account *Account) {
	container := account.Container()
	for number := range 5 {
		account.Create(container, M{"id": fmt.Sprint(number), "pk": "a", "version": 1})
	}
	account.Upsert(container, M{"id": "1", "pk": "a", "version": 2})
	account.Upsert(container, M{"id": "1", "pk": "a", "version": 3})
	Must(container.DeleteItem(account.Context, Key("a"), "2", nil))
	ranges := Must(container.ReadFeedRanges(account.Context, nil))
	changes, _ := drain(account, container, azcosmos.ChangeFeedOptions{FeedRange: &ranges[0]})
	found := []any{}
	for _, change := range changes {
		item := Item(change)
		Check(item["_lsn"] != nil, "a change carries its _lsn")
		found = append(found, []any{item["id"], item["version"]})
	}
	Equal(found, []any{[]any{"0", 1}, []any{"3", 1}, []any{"4", 1}, []any{"1", 3}}, "changes")
}

func TheFeedStartsAtATime(account *Account) {
	container := account.Container()
	account.Create(container, M{"id": "before", "pk": "a"})
	time.Sleep(2100 * time.Millisecond)
	start := time.Now()
	time.Sleep(1100 * time.Millisecond)
	account.Create(container, M{"id": "after", "pk": "a"})
	ranges := Must(container.ReadFeedRanges(account.Context, nil))
	changes, _ := drain(account, container, azcosmos.ChangeFeedOptions{FeedRange: &ranges[0], StartFrom: &start})
	Equal(IDs(changes), []string{"after"}, "changes")
}
