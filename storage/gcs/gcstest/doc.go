// Package gcstest is a server that speaks Google Cloud Storage's protocol as
// strictly as the real service does, for tests. It keeps the rules on which a
// backup's correctness hangs and which other stand-ins do not keep:
//
//   - Generation and metageneration preconditions hold on every verb, and are
//     checked at the moment at which an object would become visible.
//   - A resumable session takes bytes at their exact offset: what it has already
//     is skipped, a gap is refused, a chunk that is not the last one has a
//     multiple of 256 KiB. Nothing is visible before the total is declared and
//     reached. A question for the state ("bytes */*", or a total that is not
//     reached) finalises nothing. A finalised session gives its answer again.
//     A cancelled one answers 499, a failed one 410, an unknown or expired one 404.
//   - Checksums are checked where the service checks them: in the metadata of an
//     upload in one request, and in X-Goog-Hash of the request that finalises.
//   - 308 is answered in both dialects: as it is, and as 200 with a header of its
//     own for clients that send X-GUploader-No-308.
//   - compose takes at most 32 sources; move is atomic, and move and rewrite honour the
//     conditions on both sides; multipart uploads of the XML API can be listed, completed
//     again and aborted, and take no preconditions.
//   - Reads after writes, and listings, are consistent.
//
// It knows no versions, holds, access lists, encryption keys or gRPC. Contents
// beyond some size are kept in files, so that memory does not grow with them;
// nothing survives the server.
//
// What the service documents is followed; where it is silent, the stricter
// answer was taken. Sources: the reference of the JSON and XML API, and its pages
// on resumable uploads, request preconditions and multipart uploads.
package gcstest
