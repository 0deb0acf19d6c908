package committer

import "hbackup/internal/failpoint"

// The named steps of writing and committing an image, in order. Tests kill the
// process at each. Those of uploads are passed by Deferred alone.
const (
	StepUploadsIntended     failpoint.Step = "commit.uploads-intended" // recorded which keys come next
	StepUploadOpened        failpoint.Step = "commit.upload-opened"    // and not recorded yet
	StepUploadsRecorded     failpoint.Step = "commit.uploads-recorded"
	StepUploadFilled        failpoint.Step = "commit.upload-filled"
	StepUploadsSealed       failpoint.Step = "commit.uploads-sealed" // every receipt is recorded
	StepUploadFinished      failpoint.Step = "commit.upload-finished"
	StepUploadsFinished     failpoint.Step = "commit.uploads-finished"
	StepSnapshotFileWritten failpoint.Step = "commit.snapshot-file-written"
	StepManifestWritten     failpoint.Step = "commit.manifest-written"
	StepRecordClosed        failpoint.Step = "commit.record-closed"
)

// Steps lists those that every committer passes, DeferredSteps those of Deferred.
var (
	Steps         = []failpoint.Step{StepSnapshotFileWritten, StepManifestWritten}
	DeferredSteps = []failpoint.Step{StepUploadsIntended, StepUploadOpened, StepUploadsRecorded, StepUploadFilled, StepUploadsSealed,
		StepUploadFinished, StepUploadsFinished, StepSnapshotFileWritten, StepManifestWritten, StepRecordClosed}
)
