//go:build linux

package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// connectTime is how long an endpoint has to take a connection.
const connectTime = 5 * time.Second

var errNotFree = errors.New("the address is not free")

// forwarder carries connections from one address to any of some.
type forwarder struct {
	listener net.Listener
	targets  atomic.Pointer[[]string]
}

func newForwarder(at netip.AddrPort, targets []string) (*forwarder, error) {
	listener, err := net.Listen("tcp4", at.String())
	if err != nil {
		return nil, err
	}
	f := &forwarder{listener: listener}
	f.set(targets)
	go f.accept()
	return f, nil
}

func (f *forwarder) set(targets []string) { f.targets.Store(&targets) }

// close takes no more connections; those that there are go on.
func (f *forwarder) close() { _ = f.listener.Close() }

func (f *forwarder) accept() {
	for {
		connection, err := f.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Too many files are open, for instance.
			time.Sleep(settle)
			continue
		}
		go f.carry(connection.(*net.TCPConn))
	}
}

// carry chooses once, as rules in the kernel do: an endpoint that does not answer is for the client to notice.
func (f *forwarder) carry(client *net.TCPConn) {
	targets := *f.targets.Load()
	if len(targets) == 0 {
		reset(client)
		return
	}
	connection, err := net.DialTimeout("tcp4", targets[rand.IntN(len(targets))], connectTime)
	if err != nil {
		reset(client)
		return
	}
	server := connection.(*net.TCPConn)
	done := make(chan error, 2)
	for _, way := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		go func() {
			_, err := io.Copy(way[1], way[0])
			if err == nil {
				// The other direction may go on.
				err = way[1].CloseWrite()
			}
			done <- err
		}()
	}
	if err := <-done; err != nil {
		reset(client)
		reset(server)
	}
	<-done
	_ = client.Close()
	_ = server.Close()
}

// reset ends a connection so that the other side takes it for an error.
func reset(connection *net.TCPConn) {
	_ = connection.SetLinger(0)
	_ = connection.Close()
}
