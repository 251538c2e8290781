package harness

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Control is the control port of `peri up`; empty where there is none.
var Control = strings.TrimRight(os.Getenv("PERI_CONTROL"), "/")

// Regions is the names of the account's regions, the write region first; empty without a control port.
func Regions() (names []string) {
	if Control == "" {
		return nil
	}
	response := Must(http.Get(Control + "/topology"))
	defer response.Body.Close()
	var topology struct {
		Regions []struct {
			Name   string
			Writes bool
		}
	}
	Must(0, json.NewDecoder(response.Body).Decode(&topology))
	for _, region := range topology.Regions {
		if region.Writes {
			names = append([]string{region.Name}, names...)
		} else {
			names = append(names, region.Name)
		}
	}
	return names
}

// ChangeRegion does something to a region: down, up, drain, failover.
func ChangeRegion(region, change string, details M) {
	if details == nil {
		details = M{}
	}
	address := Control + "/regions/" + url.PathEscape(region) + "/" + change
	response := Must(http.Post(address, "application/json", bytes.NewReader(Bytes(details))))
	defer response.Body.Close()
	Check(response.StatusCode < 300, "%s of %s: %s", change, region, response.Status)
}

// During does something to a region, runs `steps`, and ends it.
func During(region, change string, details M, steps func()) {
	ChangeRegion(region, change, details)
	defer ChangeRegion(region, "up", nil)
	steps()
}
