// Package s3 keeps backups in Amazon S3 and in stores that speak its protocol.
//
// It drives the low-level service client of aws-sdk-go-v2 and nothing above it:
// the upload managers ignore checksum settings and copy what they send. Every
// object carries its CRC-64/NVME, which the store checks before the object
// becomes visible; that is the integrity of a transfer, so payloads are not
// hashed a second time for the signature (see Config.SignPayload).
//
// An object up to Config.PartSize is one PutObject. A larger one is a multipart
// upload whose parts go out side by side; its completion carries the digest and
// the size of the whole. Memory is the part buffers (Config.Memory) and nothing
// that grows with an object.
//
// # Stores that are slow or away
//
// All requests of a store share one window, which halves when the store asks for
// fewer and widens by one a round as it accepts (gate). A part that takes several
// times as long as parts took lately is sent a second time, and the first answer
// counts; where more than one sending may have landed, the completion names the
// part by the tag that the store shows (upload). A part whose attempts have all
// failed for a passing reason is looked for, and sent anew if it is not there;
// those that are stored stay.
//
// # Answers that got lost
//
// A request can succeed although its answer does not arrive, and its repetition
// is then refused: 412 for a conditional put, 404 for a completion. So every put
// stamps the object with a random id of its own in the user metadata
// hbackup-put, and a put that did not clearly succeed looks at the object: with
// its own stamp it did succeed, with another one somebody else has the key.
// Cancelling a put that has already sent its last byte waits a little for the
// answer, because that byte may have made the object visible.
//
// # Rights
//
// The credentials need, on arn:aws:s3:::BUCKET/PREFIX/*: s3:GetObject,
// s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload and
// s3:ListMultipartUploadParts; and on arn:aws:s3:::BUCKET: s3:ListBucket and
// s3:ListBucketMultipartUploads, which may be narrowed to the prefix, and
// s3:GetBucketVersioning and s3:GetBucketObjectLockConfiguration, without which it
// is not known whether objects can be deleted. With an
// SSE-KMS key also kms:GenerateDataKey and kms:Decrypt. A bucket without
// s3:AbortMultipartUpload keeps, and bills, the parts of every failed upload.
// Without s3:ListBucket the store answers "denied" where an object is missing.
package s3
