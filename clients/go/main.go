// Exercises a Cosmos DB account through azcosmos.
//
// Usage: program ENDPOINT KEY [WORD]. With WORD, only the scenarios whose name contains it.
// Prints one line per scenario and a total; exits with 1 when one failed.
package main

import (
	"fmt"
	"os"

	"perihelion.example/client/harness"
	"perihelion.example/client/scenarios"
)

func main() {
	if len(os.Args) < 3 || len(os.Args) > 4 {
		fmt.Fprintln(os.Stderr, "usage: program ENDPOINT KEY [WORD]")
		os.Exit(2)
	}
	only := ""
	if len(os.Args) == 4 {
		only = os.Args[3]
	}
	os.Exit(harness.Run(os.Args[1], os.Args[2], only, scenarios.All()))
}
