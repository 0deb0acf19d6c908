package config

import "strings"

// Limits bound how much of a location is used at once and in a second. Zero means
// no limit.
type Limits struct {
	Upload      Rate `key:"upload" min:"1KiB/s" max:"1TiB/s" defaultdoc:"no limit" doc:"Bytes of files that are written to the location in a second." example:"50MiB/s"`
	Download    Rate `key:"download" min:"1KiB/s" max:"1TiB/s" defaultdoc:"no limit" doc:"Bytes of files that are read from it in a second." example:"100MiB/s"`
	Requests    int  `key:"requests" min:"1" max:"1000000" defaultdoc:"no limit" doc:"Calls in a second: files and other objects that are written, read, looked at or deleted, and thousands of them that are listed. The parts of a large file are not counted." example:"100"`
	Concurrency int  `key:"concurrency" min:"1" max:"10000" defaultdoc:"no limit" doc:"Calls under way at once, of all that this process does; a file that is read counts until its end." example:"16"`
}

// Rate is a number of bytes in a second, written as "50MiB/s".
type Rate int64

// String gives the shortest exact form.
func (r Rate) String() string { return Size(r).String() + "/s" }

// UnmarshalText reads a size with "/s" behind it.
func (r *Rate) UnmarshalText(b []byte) error {
	var size Size
	text, ok := strings.CutSuffix(string(b), "/s")
	if !ok || size.UnmarshalText([]byte(text)) != nil {
		return hinted("write it as 50MiB/s or 512KiB/s", "%q is not a rate", b)
	}
	*r = Rate(size)
	return nil
}

// MarshalText gives String.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
