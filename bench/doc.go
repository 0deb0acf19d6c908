// Package bench measures what it takes from the last data byte of a job to
// everything visible, for the ways in which Hadoop commits output and for ours,
// on the store where the backups are to go.
//
// The protocols are FileOutputCommitter's two algorithms, the S3A magic
// committer and the manifest committer, written after Hadoop 3.4 from what their
// file systems ask of a store; and the committer of this product, which is not
// imitated but used. A protocol speaks to an FS, which turns each call into the
// requests that Hadoop's own client of that kind of store makes for it: the HEAD,
// LIST, COPY and DELETE of a rename in S3A, the rewrite and delete of Google's
// connector, a call to the name node in HDFS. One package below this one does so
// for each kind of store.
//
// Nothing is guessed: requests are counted where they leave the process, bytes as
// the bodies of requests and answers go by (Meter), and the outcome of every run
// is read back and compared. Everything happens in a folder of a random name in
// the location, which is removed at the end; nothing else is touched.
//
// These protocols exist here and nowhere else: no backup is ever committed by
// renaming.
package bench
