//go:build linux

package main

import (
	"fmt"
	"net/netip"
)

// pool hands out addresses of a range. One that was given back is not handed out before all others were: who still has
// it in mind shall not meet somebody else.
type pool struct {
	prefix netip.Prefix
	last   netip.Addr
	taken  map[netip.Addr]bool
}

func newPool(prefix netip.Prefix) *pool {
	return &pool{prefix: prefix, last: prefix.Addr(), taken: map[netip.Addr]bool{}}
}

// take reserves an address, unless it has an owner or is not of this range.
func (p *pool) take(address netip.Addr) bool {
	if !p.usable(address) || p.taken[address] {
		return false
	}
	p.taken[address] = true
	return true
}

func (p *pool) next() (netip.Addr, error) {
	for address := p.last.Next(); ; address = address.Next() {
		if !p.prefix.Contains(address) {
			address = p.prefix.Addr()
		}
		if p.take(address) {
			p.last = address
			return address, nil
		}
		if address == p.last {
			return netip.Addr{}, fmt.Errorf("all addresses of %s are taken", p.prefix)
		}
	}
}

func (p *pool) release(address netip.Addr) { delete(p.taken, address) }

// usable leaves out those that mean the range, or everybody in it, where ranges are cut to 256 addresses.
func (p *pool) usable(address netip.Addr) bool {
	if !address.Is4() || !p.prefix.Contains(address) {
		return false
	}
	last := address.As4()[3]
	return last != 0 && last != 255
}
