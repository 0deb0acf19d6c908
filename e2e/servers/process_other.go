//go:build unix && !linux

package servers

import "syscall"

// childAttributes puts a child into a process group of its own, so that an
// interrupt typed at a terminal reaches only us.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
