//go:build linux

package main

import (
	"log"
	"os/exec"
	"runtime"

	"github.com/vishvananda/netns"
)

// spawner is one thread, which may visit other network namespaces, and from which all processes are started: the system
// ends them when the thread does that started them, which this one does with the program only.
type spawner struct {
	work chan func()
}

func newSpawner() *spawner {
	spawner := &spawner{work: make(chan func())}
	go func() {
		runtime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			log.Fatalln("the network namespace of the node:", err)
		}
		for work := range spawner.work {
			work()
			if err := netns.Set(home); err != nil {
				log.Fatalln("the way back from the network namespace of a Pod:", err)
			}
		}
	}()
	return spawner
}

// do has the thread do something, in whatever network namespace that chooses.
func (s *spawner) do(what func() error) error {
	done := make(chan error, 1)
	s.work <- func() { done <- what() }
	return <-done
}

// start starts a command in a network namespace.
func (s *spawner) start(namespace netns.NsHandle, command *exec.Cmd) error {
	return s.do(func() error {
		if err := netns.Set(namespace); err != nil {
			return err
		}
		return command.Start()
	})
}
