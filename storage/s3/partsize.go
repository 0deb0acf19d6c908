package s3

// partSizeFor gives the size of the parts of an object: the configured one, or
// for objects that would need more parts than S3 allows, the smallest multiple
// of 1 MiB that does not.
func partSizeFor(size, configured int64) int64 {
	const unit = 1 << 20
	if size <= configured*maxParts {
		return configured
	}
	least := (size + maxParts - 1) / maxParts
	return (least + unit - 1) / unit * unit
}
