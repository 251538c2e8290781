package scenarios

import (
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	. "perihelion.example/client/harness"
)

func patchOf(define func(*azcosmos.PatchOperations)) azcosmos.PatchOperations {
	patch := azcosmos.PatchOperations{}
	define(&patch)
	return patch
}

func patched(account *Account, container *azcosmos.ContainerClient, define func(*azcosmos.PatchOperations)) M {
	return Item(Must(container.PatchItem(account.Context, Key("a"), "1", patchOf(define), nil)).Value)
}

func PatchEveryOperation(account *Account) {
	container := account.Container()
	account.Create(container, M{"id": "1", "pk": "a", "n": 1, "tags": []string{"x", "y"}, "nested": M{"a": 1}})
	found := patched(account, container, func(patch *azcosmos.PatchOperations) {
		patch.AppendAdd("/new", M{"k": []int{1}})
		patch.AppendAdd("/tags/1", "between")
		patch.AppendAdd("/tags/-", "end")
		patch.AppendSet("/nested/b", 2)
		patch.AppendReplace("/nested/a", "other")
		patch.AppendIncrement("/n", 5)
		patch.AppendIncrement("/created", -7)
	})
	Equal(found["new"], M{"k": []int{1}}, "new")
	Equal(found["tags"], []string{"x", "between", "y", "end"}, "tags")
	Equal(found["nested"], M{"a": "other", "b": 2}, "nested")
	Equal(found["n"], 6, "n")
	Equal(found["created"], -7, "created")
	found = patched(account, container, func(patch *azcosmos.PatchOperations) {
		patch.AppendRemove("/tags/1")
		patch.AppendRemove("/nested")
	})
	Equal(found["tags"], []string{"x", "y", "end"}, "tags")
	Check(found["nested"] == nil, "%v", found)
}

func PatchIsAllOrNothing(account *Account) {
	container := account.Container()
	account.Create(container, M{"id": "1", "pk": "a", "n": 1})
	half := patchOf(func(patch *azcosmos.PatchOperations) {
		patch.AppendSet("/n", 2)
		patch.AppendReplace("/missing", 1)
	})
	refused, err := container.PatchItem(account.Context, Key("a"), "1", half, nil)
	Fails(400, refused, err)
	Equal(account.Read(container, "a", "1")["n"], 1, "n")
}

func PatchRefusesWhatItCannotDo(account *Account) {
	container := account.Container()
	account.Create(container, M{"id": "1", "pk": "a", "n": 1})
	for _, define := range []func(*azcosmos.PatchOperations){
		func(*azcosmos.PatchOperations) {},
		func(patch *azcosmos.PatchOperations) {
			for range 11 {
				patch.AppendSet("/n", 1)
			}
		},
		func(patch *azcosmos.PatchOperations) { patch.AppendSet("/id", "2") },
		func(patch *azcosmos.PatchOperations) { patch.AppendSet("/pk", "b") },
		func(patch *azcosmos.PatchOperations) { patch.AppendSet("/_ts", 1) },
		func(patch *azcosmos.PatchOperations) { patch.AppendAdd("/missing/child", 1) },
		func(patch *azcosmos.PatchOperations) { patch.AppendRemove("/missing") },
	} {
		refused, err := container.PatchItem(account.Context, Key("a"), "1", patchOf(define), nil)
		Fails(400, refused, err)
	}
	missing := patchOf(func(patch *azcosmos.PatchOperations) { patch.AppendSet("/n", 1) })
	refused, err := container.PatchItem(account.Context, Key("a"), "none", missing, nil)
	Fails(404, refused, err)
}

func PatchConditionsDecide(account *Account) {
	container := account.Container()
	account.Create(container, M{"id": "1", "pk": "a", "n": 1, "state": "open"})
	closing := patchOf(func(patch *azcosmos.PatchOperations) {
		patch.SetCondition("from c where c.n = 1 and c.state = 'open'")
		patch.AppendSet("/state", "closed")
	})
	Must(container.PatchItem(account.Context, Key("a"), "1", closing, nil))
	refused, err := container.PatchItem(account.Context, Key("a"), "1", closing, nil)
	Equal(Fails(412, refused, err).RawResponse.Header.Get("x-ms-substatus"), "1110", "sub-status")
	Equal(account.Read(container, "a", "1")["state"], "closed", "state")
}
