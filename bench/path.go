package bench

import "strings"

// base gives the last segment of a path.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Parent gives the directory of a path, "" at the top.
func Parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }
