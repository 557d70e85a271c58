//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
)

const (
	clusterDomain = "cluster.local"
	// nameTime is how long an answer may be kept.
	nameTime = 5
	// requestTime is how long a connection of the name server may stay idle.
	requestTime = 10 * time.Second
	// largest message over UDP, when nobody has agreed on more.
	largest = 512
)

// serveNames answers for the names of Services. All other names do not exist.
func (s *services) serveNames(ctx context.Context) error {
	at := netip.AddrPortFrom(nameServer, 53).String()
	packets, err := net.ListenPacket("udp4", at)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", at)
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		_ = packets.Close()
		_ = listener.Close()
	}()
	go func() {
		buffer := make([]byte, 4096)
		for {
			length, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer := s.answer(buffer[:length], largest); answer != nil {
				_, _ = packets.WriteTo(answer, from)
			}
		}
	}()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go s.converse(connection)
		}
	}()
	return nil
}

func (s *services) converse(connection net.Conn) {
	defer connection.Close()
	for {
		_ = connection.SetDeadline(time.Now().Add(requestTime))
		var length uint16
		if err := binary.Read(connection, binary.BigEndian, &length); err != nil {
			return
		}
		request := make([]byte, length)
		if _, err := io.ReadFull(connection, request); err != nil {
			return
		}
		answer := s.answer(request, 1<<16-1)
		if answer == nil {
			return
		}
		framed := binary.BigEndian.AppendUint16(nil, uint16(len(answer)))
		if _, err := connection.Write(append(framed, answer...)); err != nil {
			return
		}
	}
}

// answer to a request, nothing if it cannot be read. One that is too long says so.
func (s *services) answer(request []byte, limit int) []byte {
	var parser dnsmessage.Parser
	header, err := parser.Start(request)
	if err != nil || header.Response {
		return nil
	}
	question, err := parser.Question()
	if err != nil {
		return nil
	}
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, Authoritative: true,
			RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{question},
	}
	addresses, alias, known := s.resolve(strings.ToLower(question.Name.String()))
	about := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: nameTime}
	switch {
	case !known:
		reply.RCode = dnsmessage.RCodeNameError
	case alias != "":
		if name, err := dnsmessage.NewName(alias); err == nil {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: about, Body: &dnsmessage.CNAMEResource{CNAME: name}})
		}
	case question.Type == dnsmessage.TypeA || question.Type == dnsmessage.TypeALL:
		for _, address := range addresses {
			reply.Answers = append(reply.Answers,
				dnsmessage.Resource{Header: about, Body: &dnsmessage.AResource{A: address.As4()}})
		}
	}
	packed, err := reply.Pack()
	if err == nil && len(packed) > limit {
		reply.Answers, reply.Truncated = nil, true
		packed, err = reply.Pack()
	}
	if err != nil {
		return nil
	}
	return packed
}

// resolve finds the addresses of a Service, those of its endpoints where it has none of its own, or the name that it
// stands for.
func (s *services) resolve(name string) (addresses []netip.Addr, alias string, known bool) {
	inside, found := strings.CutSuffix(name, ".svc."+clusterDomain+".")
	if !found {
		return nil, "", false
	}
	parts := strings.Split(inside, ".")
	host := ""
	if len(parts) == 3 {
		host, parts = parts[0], parts[1:]
	}
	if len(parts) != 2 {
		return nil, "", false
	}
	service, err := s.services.Services(parts[1]).Get(parts[0])
	if err != nil {
		return nil, "", false
	}
	if service.Spec.Type == core.ServiceTypeExternalName {
		return nil, strings.TrimSuffix(service.Spec.ExternalName, ".") + ".", host == ""
	}
	if service.Spec.ClusterIP != core.ClusterIPNone {
		address, err := netip.ParseAddr(service.Spec.ClusterIP)
		if err != nil || host != "" {
			return nil, "", false
		}
		return []netip.Addr{address}, "", true
	}
	s.endpoints(service, func(_ *discovery.EndpointSlice, endpoint *discovery.Endpoint) {
		if host != "" && (endpoint.Hostname == nil || *endpoint.Hostname != host) {
			return
		}
		if !isReady(endpoint) && !service.Spec.PublishNotReadyAddresses {
			return
		}
		for _, text := range endpoint.Addresses {
			if address, err := netip.ParseAddr(text); err == nil {
				addresses = append(addresses, address)
			}
		}
	})
	return addresses, "", host == "" || len(addresses) > 0
}
