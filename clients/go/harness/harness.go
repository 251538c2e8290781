// Package harness is what every scenario stands on: an account, checks, and a report.
//
// A scenario is a function of one argument, an Account. It gets a database of its own, which is
// deleted afterwards, so scenarios neither see nor disturb one another. A check that fails panics,
// which ends the scenario and not the program.
package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const perScenario = 90 * time.Second

// Scenario is run under the name of its function.
type Scenario func(*Account)

// Name is the name of the scenario's function, in the words of the other programs.
func (s Scenario) Name() string {
	full := runtime.FuncForPC(reflect.ValueOf(s).Pointer()).Name()
	return snake(full[strings.LastIndex(full, ".")+1:])
}

func snake(camel string) string {
	var out strings.Builder
	for place, letter := range camel {
		if place > 0 && (letter >= 'A' && letter <= 'Z') {
			out.WriteByte('_')
		}
		out.WriteRune(letter)
	}
	return strings.ToLower(out.String())
}

// Account is the account under test, as one scenario sees it.
type Account struct {
	Context  context.Context
	Endpoint string
	Key      string
	Client   *azcosmos.Client
	Database *azcosmos.DatabaseClient
}

// Open gives a client of its own. Writes respond with the item unless `define` says otherwise.
func (a *Account) Open(define ...func(*azcosmos.ClientOptions)) *azcosmos.Client {
	options := azcosmos.ClientOptions{EnableContentResponseOnWrite: true}
	for _, change := range define {
		change(&options)
	}
	credential := Must(azcosmos.NewKeyCredential(a.Key))
	return Must(azcosmos.NewClientWithKey(a.Endpoint, credential, &options))
}

// Container creates a container with the partition key /pk and 400 RU/s, as `define` changes it.
func (a *Account) Container(define ...func(*azcosmos.ContainerProperties)) *azcosmos.ContainerClient {
	return a.ContainerWith(azcosmos.NewManualThroughputProperties(400), define...)
}

// ContainerWith creates a container with the partition key /pk and some throughput.
func (a *Account) ContainerWith(
	throughput azcosmos.ThroughputProperties,
	define ...func(*azcosmos.ContainerProperties),
) *azcosmos.ContainerClient {
	properties := azcosmos.ContainerProperties{
		ID:                     Name("c"),
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
	}
	for _, change := range define {
		change(&properties)
	}
	options := azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}
	Must(a.Database.CreateContainer(a.Context, properties, &options))
	return Must(a.Database.NewContainer(properties.ID))
}

// SeveralPartitions creates a container that spans several physical partitions.
func (a *Account) SeveralPartitions(define ...func(*azcosmos.ContainerProperties)) *azcosmos.ContainerClient {
	container := a.ContainerWith(azcosmos.NewManualThroughputProperties(30000), define...)
	ranges := Must(container.ReadFeedRanges(a.Context, nil))
	Check(len(ranges) >= 3, "30,000 RU/s gave only %d physical partitions", len(ranges))
	return container
}

// KeyedBy is a definition with other partition key paths.
func KeyedBy(paths ...string) func(*azcosmos.ContainerProperties) {
	return func(properties *azcosmos.ContainerProperties) {
		kind := azcosmos.PartitionKeyKindHash
		if len(paths) > 1 {
			kind = azcosmos.PartitionKeyKindMultiHash
		}
		properties.PartitionKeyDefinition = azcosmos.PartitionKeyDefinition{Kind: kind, Paths: paths, Version: 2}
	}
}

// Run runs every scenario whose name contains `only`, and returns the exit code of the program.
func Run(endpoint, key, only string, scenarios []Scenario) int {
	passed, failed := 0, 0
	for _, scenario := range scenarios {
		if !strings.Contains(scenario.Name(), only) {
			continue
		}
		started := time.Now()
		if failure := runOne(endpoint, key, scenario); failure != "" {
			failed++
			fmt.Printf("FAIL %s %s\n", scenario.Name(), failure)
		} else {
			passed++
			fmt.Printf("ok   %s (%d ms)\n", scenario.Name(), time.Since(started).Milliseconds())
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		return 1
	}
	return 0
}

func runOne(endpoint, key string, scenario Scenario) (failure string) {
	limited, cancel := context.WithTimeout(context.Background(), perScenario)
	defer cancel()
	account := &Account{Context: limited, Endpoint: endpoint, Key: key}
	defer func() {
		if reason := recover(); reason != nil {
			failure = fmt.Sprintf("at %s: %v", place(), reason)
		}
		if account.Database != nil {
			// A scenario that ran out of time still cleans up.
			if _, err := account.Database.Delete(context.Background(), nil); err != nil && failure == "" {
				failure = fmt.Sprintf("its database could not be deleted: %v", err)
			}
		}
	}()
	account.Client = account.Open()
	id := Name("db")
	Must(account.Client.CreateDatabase(limited, azcosmos.DatabaseProperties{ID: id}, nil))
	account.Database = Must(account.Client.NewDatabase(id))
	scenario(account)
	return ""
}

// place says where in this program a check failed: the frames of the SDK say little.
func place() string {
	var counters [32]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(3, counters[:])])
	var ours []string
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "/scenarios.") {
			ours = append(ours, fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line))
		}
		if !more {
			return strings.Join(ours, " < ")
		}
	}
}
