package scenarios

import (
	"context"
	"encoding/base64"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

func DatabasesAreCreatedReadQueriedAndDeleted(account *Account) {
	wanted := azcosmos.DatabaseProperties{ID: Name("db")}
	created := Must(account.Client.CreateDatabase(account.Context, wanted, nil)).DatabaseProperties
	Check(created.ResourceID != "" && created.SelfLink != "" && created.ETag != nil, "%v", created)
	Check(!created.LastModified.IsZero(), "no time of change")
	database := Must(account.Client.NewDatabase(wanted.ID))
	read := Must(database.Read(account.Context, nil))
	Equal(read.DatabaseProperties.ResourceID, created.ResourceID, "_rid")
	Check(read.RequestCharge > 0 && read.ActivityID != "", "no charge or activity")

	found := []string{}
	for _, page := range Must(Pages(account.Context, account.Client.NewQueryDatabasesPager(
		"SELECT * FROM root r WHERE r.id = @id",
		&azcosmos.QueryDatabasesOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: wanted.ID}}},
	))) {
		for _, database := range page.Databases {
			found = append(found, database.ID)
		}
	}
	Equal(found, []string{wanted.ID}, "queried databases")

	again, err := account.Client.CreateDatabase(account.Context, wanted, nil)
	Fails(409, again, err)
	stale := azcore.ETag(`"stale"`)
	kept, err := database.Delete(account.Context, &azcosmos.DeleteDatabaseOptions{IfMatchEtag: &stale})
	Fails(412, kept, err)
	Must(database.Delete(account.Context, nil))
	gone, err := database.Read(account.Context, nil)
	Fails(404, gone, err)
	gone, err = database.Delete(account.Context, nil)
	Fails(404, gone, err)
}

func DatabaseNamesMayHoldAnyAllowedCharacter(account *Account) {
	for _, words := range []string{"with space", "中文 база", "a.b-c_d~e,f=g(h)[i]{j}@k!l$m^n+o", "per%20cent"} {
		wanted := words + " " + Name("x")
		Must(account.Client.CreateDatabase(account.Context, azcosmos.DatabaseProperties{ID: wanted}, nil))
		database := Must(account.Client.NewDatabase(wanted))
		Equal(Must(database.Read(account.Context, nil)).DatabaseProperties.ID, wanted, "id")
		Must(database.Delete(account.Context, nil))
	}
}

func AWrongKeyIsRefused(account *Account) {
	stranger := *account
	stranger.Key = base64.StdEncoding.EncodeToString([]byte(strings.Repeat("wrong key ", 6)))
	database := Must(stranger.Open().NewDatabase(account.Database.ID()))
	read, err := database.Read(account.Context, nil)
	refused := Fails(401, read, err)
	Equal(refused.ErrorCode, "401 Unauthorized", "error code")
}

func WhatIsMissingIsSaidToBe(account *Account) {
	missing := Must(account.Client.NewDatabase(Name("none")))
	database, err := missing.Read(account.Context, nil)
	Fails(404, database, err)
	nowhere := Must(account.Database.NewContainer("none"))
	container, err := nowhere.Read(account.Context, nil)
	Fails(404, container, err)
	item, err := nowhere.CreateItem(account.Context, Key("a"), Bytes(M{"id": "1", "pk": "a"}), nil)
	Fails(404, item, err)
	item, err = account.Container().ReadItem(account.Context, Key("a"), "none", nil)
	refused := Fails(404, item, err)
	Check(strings.Contains(refused.Error(), "NotFound"), "%v", refused)
	Check(refused.RawResponse.Header.Get("x-ms-activity-id") != "", "no activity id")
	diagnostics, present := azcosmos.DiagnosticsFromError(err)
	Check(present && strings.Contains(diagnostics.String(), "404"), "diagnostics: %v", diagnostics)
}

// directory gives a well-formed token of nobody in particular: a local account has no directory to ask.
type directory struct{}

func (directory) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	now := time.Now()
	part := func(content M) string { return base64.RawURLEncoding.EncodeToString(Bytes(content)) }
	claims := M{
		"aud": "https://localhost", "iss": "https://sts.local", "oid": "somebody",
		"nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	token := part(M{"alg": "none", "typ": "JWT"}) + "." + part(claims) + ".c2lnbmF0dXJl"
	return azcore.AccessToken{Token: token, ExpiresOn: now.Add(time.Hour)}, nil
}

func ADirectoryTokenIsAccepted(account *Account) {
	container := account.Container()
	account.Create(container, M{"id": "1", "pk": "a"})
	endpoint := Must(url.Parse(account.Endpoint))
	if endpoint.Scheme != "https" {
		return // the SDK sends such a token over TLS only
	}
	client := Must(azcosmos.NewClient(account.Endpoint, directory{}, nil))
	theirs := Must(client.NewContainer(account.Database.ID(), container.ID()))
	Equal(account.Read(theirs, "a", "1")["id"], "1", "id")
	Must(theirs.UpsertItem(account.Context, Key("a"), Bytes(M{"id": "2", "pk": "a"}), nil))
	Equal(account.Rows(theirs, "SELECT VALUE c.id FROM c ORDER BY c.id", Key("a")), []string{"1", "2"}, "ids")
}
