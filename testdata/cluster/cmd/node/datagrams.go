//go:build linux

package main

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// idleTime is how long a client of UDP keeps its endpoint without a datagram in either direction.
	idleTime = 30 * time.Second
	// largestDatagram is what IPv4 can carry.
	largestDatagram = 65507
)

// datagrams carries datagrams from one address to any of some, and the answers back. The datagrams of one client address
// go to one endpoint while it lasts, as with rules in the kernel.
type datagrams struct {
	socket  *net.UDPConn
	targets atomic.Pointer[[]string]

	mutex    sync.Mutex
	sessions map[netip.AddrPort]*net.UDPConn
}

func newDatagrams(at netip.AddrPort, targets []string) (*datagrams, error) {
	socket, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	d := &datagrams{socket: socket, sessions: map[netip.AddrPort]*net.UDPConn{}}
	d.set(targets)
	go d.receive()
	return d, nil
}

func (d *datagrams) set(targets []string) {
	d.targets.Store(&targets)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for client, session := range d.sessions {
		if !slices.Contains(targets, session.RemoteAddr().String()) {
			_ = session.Close()
			delete(d.sessions, client)
		}
	}
}

func (d *datagrams) close() {
	_ = d.socket.Close()
	d.set(nil)
}

func (d *datagrams) receive() {
	buffer := make([]byte, largestDatagram)
	for {
		size, client, err := d.socket.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if session := d.session(client); session != nil {
			_ = session.SetReadDeadline(time.Now().Add(idleTime))
			_, _ = session.Write(buffer[:size])
		}
	}
}

// session is the socket of a client, a new one if it has none; nil without an endpoint.
func (d *datagrams) session(client netip.AddrPort) *net.UDPConn {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if session := d.sessions[client]; session != nil {
		return session
	}
	targets := *d.targets.Load()
	if len(targets) == 0 {
		return nil
	}
	connection, err := net.Dial("udp4", targets[rand.IntN(len(targets))])
	if err != nil {
		return nil
	}
	session := connection.(*net.UDPConn)
	d.sessions[client] = session
	go d.answer(client, session)
	return session
}

// answer passes on what an endpoint sends, until it is silent or refuses.
func (d *datagrams) answer(client netip.AddrPort, session *net.UDPConn) {
	buffer := make([]byte, largestDatagram)
	for {
		size, err := session.Read(buffer)
		if err != nil {
			break
		}
		_ = session.SetReadDeadline(time.Now().Add(idleTime))
		_, _ = d.socket.WriteToUDPAddrPort(buffer[:size], client)
	}
	_ = session.Close()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.sessions[client] == session {
		delete(d.sessions, client)
	}
}
