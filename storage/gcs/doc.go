// Package gcs keeps backups in Google Cloud Storage, by its JSON API.
//
// It drives cloud.google.com/go/storage. An object up to Config.ChunkSize is read
// into a buffer and sent with one request that carries its CRC32C; a larger one
// is a resumable upload, whose last request carries the CRC32C of the whole. The
// service checks it before the object becomes visible. One of many chunks is a
// multipart upload of the XML API, whose parts are sent side by side and checked
// one by one: it gets a temporary name, is compared as a whole with what was sent,
// and is moved to its key then, under the precondition that the XML API does not
// take. Memory is some chunks for each put that is under way, bounded by
// Config.Memory, and nothing that grows with an object.
//
// The service keeps CRC32C and not our digest. It is stored in the user metadata
// hbackup-crc64nvme, and Stat gives it: with the object where it is known before
// the upload begins, which it is for objects that fit a chunk and for puts that
// name it; otherwise by a change of the metadata of that very generation, which
// needs the right storage.objects.update and is left out without it. A whole
// object that is read is checked against the CRC32C.
//
// # Answers that got lost
//
// A request can succeed although its answer does not arrive. Its repetition is
// then refused with 412, or takes away what somebody else has put there since. So
// Delete names the generation that it found, and every put stamps the object with
// a random id of its own in the user metadata hbackup-put. A put that did not
// clearly succeed looks at the object: with its own stamp it did succeed, with
// another one somebody else has the key. Cancelling a put that has already sent
// its last byte waits a little for the answer, because that byte may have made the
// object visible. A resumable upload that is given up leaves a session that nobody
// can see, is not billed, and expires within a week. A multipart upload, whose
// parts are billed, is aborted; what a killed process leaves in the folder
// .hbackup-tmp of the location is removed two days later by the next large put.
//
// # Rights
//
// The account needs storage.objects.create, .delete, .get and .list on the
// bucket, and for what was said above storage.objects.update and .move and
// storage.multipartUploads.*: the role Storage Object User
// (roles/storage.objectUser) has them all. Without storage.objects.list the
// service answers "denied" where an object is missing; without those of multipart
// uploads large objects are sent in chunks. So they are where a retention policy
// or holds keep objects from being moved.
// Without storage.buckets.get it is not known whether objects can be deleted.
//
// # Costs that surprise
//
// Buckets keep deleted objects for seven days and bill them unless soft delete is
// switched off, and the classes Nearline, Coldline and Archive bill an object
// that is deleted early as if it had stayed. Neither touches a temporary object:
// what is moved is not deleted. Each part of a large object is one billed request;
// a resumable upload is one in all.
package gcs
