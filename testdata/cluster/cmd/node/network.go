//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const bridgeName = "pods"

var (
	// Who they belong to is known everywhere: the first address of Pods is the node's own.
	podRange          = netip.MustParsePrefix("10.244.0.0/16")
	nodeAddress       = netip.MustParseAddr("10.244.0.1")
	serviceRange      = netip.MustParsePrefix("10.96.0.0/16")
	nameServer        = netip.MustParseAddr("10.96.0.10")
	loadBalancerRange = netip.MustParsePrefix("198.19.0.0/16")
)

// network is the bridge that Pods are connected to, and the addresses on it.
type network struct {
	bridge    *netlink.Bridge
	mutex     sync.Mutex
	addresses *pool
}

// newNetwork makes the bridge, and has the system take every address of a Service for one of its own.
func newNetwork() (*network, error) {
	if isMachines() {
		return nil, errors.New("this is the network of the machine itself, which is left as it is")
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, err
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return nil, err
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = bridgeName
	// Without an address of its own it takes the lowest one of its Pods, which changes as they come and go: those that
	// know the last one would be unheard until they ask again, for half a minute.
	attributes.HardwareAddr = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x01}
	bridge := &netlink.Bridge{LinkAttrs: attributes}
	// A node that was killed has left one behind.
	if err := netlink.LinkAdd(bridge); err != nil && !errors.Is(err, syscall.EEXIST) {
		return nil, err
	}
	link, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return nil, err
	}
	bridge.Index = link.Attrs().Index
	if err := netlink.AddrReplace(bridge, onLink(nodeAddress)); err != nil {
		return nil, err
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return nil, err
	}
	for _, own := range []netip.Prefix{serviceRange, loadBalancerRange} {
		route := &netlink.Route{
			LinkIndex: loopback.Attrs().Index,
			Dst:       &net.IPNet{IP: own.Addr().AsSlice(), Mask: net.CIDRMask(own.Bits(), 32)},
			Type:      unix.RTN_LOCAL,
			Table:     unix.RT_TABLE_LOCAL,
			Scope:     unix.RT_SCOPE_HOST,
		}
		if err := netlink.RouteReplace(route); err != nil {
			return nil, fmt.Errorf("the addresses %s: %w", own, err)
		}
	}
	addresses := newPool(podRange)
	addresses.take(nodeAddress)
	return &network{bridge: bridge, addresses: addresses}, nil
}

// isMachines says whether this is the network namespace of the machine's first process. Whoever is in a user namespace of
// its own may not look there.
func isMachines() bool {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return true
	}
	first, err := os.Readlink("/proc/1/ns/net")
	return err == nil && first == own
}

func onLink(address netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(podRange.Bits(), 32)}}
}

// podNetwork is the network namespace of a Pod.
type podNetwork struct {
	network   *network
	address   netip.Addr
	namespace netns.NsHandle
}

// attach makes a network namespace, with the given address if it is one.
func (n *network) attach(spawner *spawner, wanted string) (*podNetwork, error) {
	n.mutex.Lock()
	address, err := netip.ParseAddr(wanted)
	if err != nil || !n.addresses.take(address) {
		address, err = n.addresses.next()
	}
	n.mutex.Unlock()
	if err != nil {
		return nil, err
	}
	made := &podNetwork{network: n, address: address, namespace: netns.None()}
	if err := made.connect(spawner); err != nil {
		made.detach()
		return nil, fmt.Errorf("the network of a Pod: %w", err)
	}
	return made, nil
}

func (p *podNetwork) connect(spawner *spawner) error {
	err := spawner.do(func() (err error) {
		p.namespace, err = netns.New()
		return err
	})
	if err != nil {
		return err
	}
	bytes := p.address.As4()
	attributes := netlink.NewLinkAttrs()
	attributes.Name = fmt.Sprintf("pod-%d-%d", bytes[2], bytes[3])
	attributes.MasterIndex = p.network.bridge.Index
	// The other end of a Pod that is gone may be about to follow it.
	if old, err := netlink.LinkByName(attributes.Name); err == nil {
		_ = netlink.LinkDel(old)
	}
	veth := &netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(p.namespace))}
	if err := netlink.LinkAdd(veth); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(veth); err != nil {
		return err
	}
	inside, err := netlink.NewHandleAt(p.namespace)
	if err != nil {
		return err
	}
	defer inside.Close()
	for _, name := range []string{"lo", "eth0"} {
		link, err := inside.LinkByName(name)
		if err != nil {
			return err
		}
		if name == "eth0" {
			if err := inside.AddrAdd(link, onLink(p.address)); err != nil {
				return err
			}
		}
		if err := inside.LinkSetUp(link); err != nil {
			return err
		}
	}
	return inside.RouteAdd(&netlink.Route{Gw: nodeAddress.AsSlice()})
}

// detach gives the address back. The link goes with the namespace, when nobody is in it any more.
func (p *podNetwork) detach() {
	if p.namespace.IsOpen() {
		_ = p.namespace.Close()
	}
	p.network.mutex.Lock()
	defer p.network.mutex.Unlock()
	p.network.addresses.release(p.address)
}
