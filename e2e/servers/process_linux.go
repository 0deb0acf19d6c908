package servers

import "syscall"

// childAttributes puts a child into a process group of its own, so that an
// interrupt typed at a terminal reaches only us, and lets the kernel kill it
// when we die.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
