// Command supervise runs a program that must not outlive whoever asked for it.
//
//	supervise LOG PROGRAM [ARGUMENT...]
//
// The program gets a process group of its own and writes to the file LOG. Its process id is the first line on
// standard output. After that, each line on standard input names a signal for the group, and each is answered with a
// line once it is sent. When standard input ends, as it does when the process at its other end is gone for whatever
// reason, the group is killed. The exit code is the program's, or 128 and the number of the signal that ended it.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

var signals = map[string]syscall.Signal{
	"stop":   syscall.SIGTERM,
	"kill":   syscall.SIGKILL,
	"pause":  syscall.SIGSTOP,
	"resume": syscall.SIGCONT,
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: supervise LOG PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}
	code, err := supervise(os.Args[1], os.Args[2], os.Args[3:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "supervise:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func supervise(log, program string, arguments []string) (int, error) {
	// Where the system tells a child of its parent's death, it means the thread that started it.
	runtime.LockOSThread()

	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer output.Close()
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = attributes()
	if err := command.Start(); err != nil {
		return 0, err
	}
	group := command.Process.Pid
	fmt.Println(group)

	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	go obey(group, ended)
	<-ended
	return exitCode(command.ProcessState), nil
}

// obey sends the group the signals that standard input asks for, and kills it at the end of the input.
func obey(group int, ended <-chan struct{}) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		select {
		case <-ended:
			return
		default:
		}
		signal, known := signals[lines.Text()]
		if !known {
			fmt.Printf("unknown signal %q\n", lines.Text())
			continue
		}
		if err := syscall.Kill(-group, signal); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("sent")
	}
	_ = syscall.Kill(-group, syscall.SIGKILL)
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
