package gcs

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/check"
	"hbackup/storage"
	"hbackup/storage/gcs/gcstest"
	"hbackup/storage/storetest/proxy"
)

var _ check.Inspector = (*Store)(nil)

// validate tries the store out as hbackup target validate does and gives the items
// by name.
func validate(t *testing.T, s *Store, noSuite bool) map[string]check.Item {
	t.Helper()
	r, err := check.Target(t.Context(), s, check.TargetOptions{PartSize: chunkQuantum, NoSuite: noSuite})
	if err != nil {
		t.Fatal(err)
	}
	items := map[string]check.Item{}
	for _, i := range r.Items {
		items[i.Name] = i
	}
	for o, err := range s.List(context.WithoutCancel(t.Context()), "", storage.ListOptions{}) {
		t.Errorf("left: %s, %v", o.Key, err)
	}
	return items
}

func wantItem(t *testing.T, items map[string]check.Item, name string, status check.Status, says string) {
	t.Helper()
	if i := items[name]; i.Status != status || !strings.Contains(i.Detail+" "+i.Hint, says) {
		t.Errorf("%q is %+v; want %s, %q", name, i, status, says)
	}
}

func TestValidate(t *testing.T) {
	items := validate(t, open(t, configFor(t)), false)
	for _, i := range items {
		if i.Status == check.Failed || i.Status == check.Warning {
			t.Errorf("%+v", i)
		}
	}
	for name, says := range map[string]string{"checksums": "refused by the server", "conditional replace": "honoured", "move": "storage.objects.move", "uploads in parts": ".abort",
		"soft delete": "off", "versioning": "off", "create if absent": "cases", "rights": "storage.objects.list, storage.objects.get, storage.objects.create, storage.objects.delete"} {
		wantItem(t, items, name, check.OK, says)
	}
}

// serverWith is a server whose bucket has those attributes.
func serverWith(t *testing.T, attributes map[string]any, retention time.Duration) *Store {
	t.Helper()
	g, err := gcstest.Start("", gcstest.Options{Buckets: []string{bucket}, Attributes: attributes, Retention: retention})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	c := configFor(t)
	c.Endpoint = g.Endpoint()
	return open(t, c)
}

func TestSettingsOfABucket(t *testing.T) {
	rule := func(action map[string]any, condition map[string]any) map[string]any {
		return map[string]any{"lifecycle": map[string]any{"rule": []any{map[string]any{"action": action, "condition": condition}}}}
	}
	del := map[string]any{"type": "Delete"}
	for name, c := range map[string]struct {
		attributes map[string]any
		item       string
		status     check.Status
		says       string
	}{
		"deletes":           {rule(del, map[string]any{"age": 30}), lifecycle, check.Failed, "after 30 days"},
		"deletes ours":      {rule(del, map[string]any{"age": 30, "matchesPrefix": []string{"x", "t"}}), lifecycle, check.Failed, "rule 1 deletes"},
		"deletes others'":   {rule(del, map[string]any{"age": 30, "matchesPrefix": []string{"logs/"}}), lifecycle, check.OK, "none hurts"},
		"deletes old ones":  {rule(del, map[string]any{"isLive": false}), lifecycle, check.OK, "none hurts"},
		"aborts soon":       {rule(map[string]any{"type": "AbortIncompleteMultipartUpload"}, map[string]any{"age": 1}), lifecycle, check.Failed, "1 days"},
		"aborts in a while": {rule(map[string]any{"type": "AbortIncompleteMultipartUpload"}, map[string]any{"age": 3}), lifecycle, check.Warning, "3 days"},
		"aborts late":       {rule(map[string]any{"type": "AbortIncompleteMultipartUpload"}, map[string]any{"age": 10}), lifecycle, check.OK, "none hurts"},
		"colder class":      {rule(map[string]any{"type": "SetStorageClass", "storageClass": "ARCHIVE"}, map[string]any{"age": 10}), lifecycle, check.OK, "none hurts"},
		"soft delete":       {map[string]any{"softDeletePolicy": map[string]any{"retentionDurationSeconds": "604800"}}, "soft delete", check.Warning, "7 days"},
		"versioning":        {map[string]any{"versioning": map[string]any{"enabled": true}}, "versioning", check.Warning, "older versions"},
		"hold":              {map[string]any{"defaultEventBasedHold": true}, "object lock", check.Warning, "event-based hold"},
		"class":             {map[string]any{"storageClass": "COLDLINE"}, "storage class", check.Warning, "90 days"},
	} {
		t.Run(name, func(t *testing.T) {
			items := validate(t, serverWith(t, c.attributes, 0), true)
			wantItem(t, items, c.item, c.status, c.says)
			if i := items[c.item]; c.status == check.Failed && !hbackup.IsKind(i.Err, hbackup.KindRefused) {
				t.Errorf("%+v", i)
			}
		})
	}
	t.Run("retention", func(t *testing.T) {
		s := serverWith(t, nil, time.Hour)
		r, err := check.Target(t.Context(), s, check.TargetOptions{NoSuite: true})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.Left, "retention") && r.Left == "" {
			t.Errorf("nothing is said of what stays: %+v", r.Items)
		}
	})
}

func TestValidateNamesMissingRights(t *testing.T) {
	deny := func(that func(op string, r *http.Request) bool) proxy.Fault {
		return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return that(op, r) && refuse(w, r, http.StatusForbidden, "forbidden")
		}
	}
	for name, c := range map[string]struct {
		fault  proxy.Fault
		status check.Status
	}{
		"right storage.objects.create": {deny(func(op string, r *http.Request) bool { return op == opInsert }), check.Failed},
		"right storage.objects.get":    {deny(func(op string, r *http.Request) bool { return op == opGet && strings.Contains(r.URL.Path, "probe") }), check.Failed},
		"right storage.objects.move":   {deny(func(op string, r *http.Request) bool { return strings.Contains(r.URL.Path, "/moveTo/") }), check.Warning},
		"right storage.multipartUploads.create": {deny(func(op string, r *http.Request) bool {
			return r.Method == http.MethodPost && r.URL.Query().Has("uploads")
		}), check.Warning},
		"right storage.multipartUploads.abort": {deny(func(op string, r *http.Request) bool {
			return r.Method == http.MethodDelete && r.URL.Query().Has("uploadId")
		}), check.Warning},
		"bucket settings": {deny(func(op string, r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/b/"+bucket) }), check.Warning},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, p := behind(t, nil)
			p.Set(c.fault)
			r, err := check.Target(t.Context(), s, check.TargetOptions{NoSuite: true})
			if err != nil {
				t.Fatal(err)
			}
			items := map[string]check.Item{}
			for _, i := range r.Items {
				items[i.Name] = i
			}
			wantItem(t, items, name, c.status, "")
		})
	}
}
