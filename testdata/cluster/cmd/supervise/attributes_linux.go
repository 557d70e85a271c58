package main

import "syscall"

// attributes also covers a supervisor that is killed itself.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
