// Package gcs keeps backups in Google Cloud Storage, by its JSON API.
//
// It drives cloud.google.com/go/storage. An object up to Config.ChunkSize is read
// into a buffer and sent with one request that carries its CRC32C; a larger one
// is a resumable upload, whose last request carries the CRC32C of the whole. The
// service checks it before the object becomes visible. Memory is one chunk for
// each put that is under way, bounded by Config.Memory, and nothing that grows
// with an object.
//
// The service keeps CRC32C and not our digest. When the digest is known before
// the upload begins, which it is for objects that fit a chunk and for puts that
// name it, it is stored in the user metadata hbackup-crc64nvme and Stat gives it.
// A whole object that is read is checked against the CRC32C.
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
// object visible. An upload that is given up leaves a session that nobody can see,
// is not billed, and expires within a week.
//
// # Rights
//
// The account needs storage.objects.create, .delete, .get and .list on the
// bucket: the role Storage Object User (roles/storage.objectUser) has them.
// Without storage.objects.list the service answers "denied" where an object is
// missing. Without storage.buckets.get it is not known whether objects can be
// deleted.
//
// # Costs that surprise
//
// Buckets keep deleted objects for seven days and bill them unless soft delete is
// switched off, and the classes Nearline, Coldline and Archive bill an object
// that is deleted early as if it had stayed.
package gcs
