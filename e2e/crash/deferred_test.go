package crash

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"hbackup/backup"
	"hbackup/committer"
)

// TestCommitKilledAtEveryStep kills a backup before, inside and after each phase of
// the commit, with both committers in a bucket and with direct in a directory, and
// runs the same request again: there is one image and no upload, and neighbours
// whose names begin alike have lost nothing.
func TestCommitKilledAtEveryStep(t *testing.T) {
	const name = "crash:commit"
	table(t, name, 7)
	want := dump(t, name, true)
	client := s3Client(t)

	type killed struct {
		place
		at   string
		args []string
	}
	var all []killed
	var places []place
	add := func(p place, at string) {
		places = append(places, p)
		all = append(all, killed{p, at, backupArgs(p, "crash", name)})
	}
	for i, s := range deferredPoints() {
		add(heldPlace(fmt.Sprintf("held-%d", i)), s)
	}
	for i, s := range committer.Steps {
		add(s3Place(fmt.Sprintf("direct-%d", i)), string(s))
		add(dirPlace(fmt.Sprintf("plain-%d", i)), string(s))
	}
	x := toolFor(t, places...)

	// Each place has a neighbour with an upload of its own in flight.
	var neighbours []string
	for _, k := range all {
		for _, key := range []string{k.name + "0/" + k.name + "/archive/x", k.name + "/" + k.name + "0/archive/x"} {
			_, err := client.CreateMultipartUpload(t.Context(), &sdk.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String(key)})
			check(t, err)
			neighbours = append(neighbours, key)
		}
	}
	slices.Sort(neighbours)

	held := 0
	for _, k := range all {
		if r := x.With(shortLease, "HBACKUP_FAILPOINT="+k.at).Run(t.Context(), k.args...); !r.Killed {
			t.Fatalf("%s: not killed at %s: %s", k.name, k.at, r)
		}
		held += len(uploadsBelow(t, client, k.name+"/"+k.name+"/"))
	}
	if held == 0 {
		t.Error("no kill has left an upload")
	}
	for _, k := range all {
		b := resultOf(t, x.Run(t.Context(), k.args...))
		oneImage(t, x, k.place, b)
		if left := uploadsBelow(t, client, k.name+"/"+k.name+"/"); len(left) > 0 {
			t.Errorf("killed at %s, then run again: uploads are left: %q", k.at, left)
		}
		if k.held {
			if left := k.files(t, "jobs/crash/uploads"); len(left) > 0 {
				t.Errorf("killed at %s, then run again: records are left: %v", k.at, left)
			}
		}
	}
	if got := uploadsBelow(t, client, ""); !slices.Equal(got, neighbours) {
		t.Errorf("the uploads are %q; want those of the neighbours, %q", got, neighbours)
	}
	noneLeft(t, x, places[0])
	for _, i := range []int{slices.IndexFunc(all, func(k killed) bool { return k.at == string(committer.StepUploadFinished)+"#3" }), len(deferredPoints()), len(all) - 1} {
		var again backupResult
		x.JSON(t, &again, all[i].args[2:]...)
		equal(t, x, all[i].place, again.Backup, name, want, true)
	}

	// What a request that nobody runs again has left is dropped by the next one.
	p := heldPlace("held-dead")
	x = toolFor(t, p)
	if r := x.With("HBACKUP_LEASE_TTL=5s", "HBACKUP_FAILPOINT="+string(committer.StepUploadFilled)+"#3").Run(t.Context(), backupArgs(p, "dead", name)...); !r.Killed {
		t.Fatalf("not killed: %s", r)
	}
	if len(uploadsBelow(t, client, p.name+"/")) == 0 {
		t.Error("the dead run has left no upload")
	}
	awaitDeath(t, x, p)
	b := resultOf(t, x.Run(t.Context(), backupArgs(p, "next", name)...))
	x.OK(t, "verify", b.Backup)
	if left := uploadsBelow(t, client, p.name+"/"); len(left) > 0 {
		t.Errorf("the next run has left the uploads %q", left)
	}
	noneLeft(t, x, p)
}

// deferredPoints gives the steps at which a backup by uploads is killed: one before,
// inside and after each phase. A backup in memory dies at every single call.
func deferredPoints() []string {
	return []string{string(backup.StepFilesCopied), string(committer.StepUploadOpened), string(committer.StepUploadsRecorded), string(committer.StepUploadFilled),
		string(committer.StepUploadsSealed), string(committer.StepUploadFinished) + "#3", string(committer.StepUploadsFinished),
		string(committer.StepManifestWritten), string(committer.StepRecordClosed)}
}

func s3Client(t *testing.T) *sdk.Client {
	t.Helper()
	c, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(s3.Region),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(s3.AccessKey, s3.SecretKey, "")))
	check(t, err)
	return sdk.NewFromConfig(c, func(o *sdk.Options) {
		o.BaseEndpoint, o.UsePathStyle = aws.String(s3.Endpoint()), true
	})
}

// uploadsBelow gives the keys of the uploads that are open under a prefix.
func uploadsBelow(t *testing.T, client *sdk.Client, prefix string) []string {
	t.Helper()
	out, err := client.ListMultipartUploads(t.Context(), &sdk.ListMultipartUploadsInput{Bucket: aws.String(bucket), Prefix: aws.String(prefix)})
	check(t, err)
	var keys []string
	for _, u := range out.Uploads {
		keys = append(keys, aws.ToString(u.Key))
	}
	slices.Sort(keys)
	return keys
}
