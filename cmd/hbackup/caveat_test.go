package main

import (
	"bytes"
	"strings"
	"testing"

	"hbackup"
	"hbackup/catalog"
	"hbackup/catalog/verify"
	"hbackup/config"
)

// An image that no restore would take is seen where backups are looked at.
func TestACaveatIsShown(t *testing.T) {
	run := completeRun()
	run.Tables[0].Caveat = &catalog.Failure{Kind: hbackup.KindUnsupported, Message: "region x needs a part of a file", Hint: "compact it"}
	var out bytes.Buffer
	if _, err := newRun(run, "main").tableTable().WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{string(fakeID.Image(0)), "cannot be restored as it is: region x needs a part of a file", "hint: compact it"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "cannot be restored"); n != 1 {
		t.Errorf("said %d times", n)
	}
}

func TestVerifyOfAnImageThatCannotBeRestored(t *testing.T) {
	whole := verify.Fault{Image: fakeID.Image(0), Table: orders, Path: "s3://bucket/m", Kind: hbackup.KindUnsupported, What: "needs a part of a file"}
	unread := verify.Fault{Image: fakeID.Image(1), Path: "s3://bucket/x", Kind: hbackup.KindTimeout, What: "no answer"}
	damaged := verify.Fault{Image: fakeID.Image(1), Path: "s3://bucket/y", Kind: hbackup.KindCorrupt, What: "other bytes"}
	for _, c := range []struct {
		faults []verify.Fault
		want   hbackup.Kind
		says   string
	}{
		{[]verify.Fault{whole}, hbackup.KindUnsupported, "nothing is damaged, but hbackup restore would refuse"},
		{[]verify.Fault{whole, unread}, hbackup.KindTimeout, "could not be read, the first one s3://bucket/x"},
		{[]verify.Fault{whole, unread, damaged}, hbackup.KindCorrupt, "damaged"},
	} {
		d := newVerifyDocument(backupRef{backup: fakeID}, foundBackup{cluster: &config.Cluster{Name: "prod"}}, verify.Report{Images: 2, Files: 3, Faults: c.faults}, false)
		if err := d.err(); d.OK || !hbackup.IsKind(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d faults: %v", len(c.faults), err)
		}
	}
}

// What a partial backup holds may be all good; what it does not hold is named.
func TestVerifyNamesTheTablesThatAPartialBackupLacks(t *testing.T) {
	d := newVerifyDocument(backupRef{backup: fakeID}, foundBackup{cluster: &config.Cluster{Name: "prod"}, run: partialRun()}, verify.Report{Images: 1, Files: 3}, false)
	var out bytes.Buffer
	if _, err := d.table(fakeNow)[0].WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	if !d.OK || len(d.Without) != 1 || d.Without[0] != customers || !strings.Contains(out.String(), "not in it") || !strings.Contains(out.String(), "customers") {
		t.Errorf("got %+v\n%s", d, out.String())
	}
}
