// Command dns answers every query, over UDP and TCP on port 53, with an address of documentation. It runs in Pods in place
// of CoreDNS, whose answers the suite does not look at.
package main

import (
	"log"
	"net"

	"github.com/miekg/dns"
)

func main() {
	dns.HandleFunc(".", answer)
	failed := make(chan error)
	for _, transport := range []string{"udp", "tcp"} {
		go func() { failed <- dns.ListenAndServe(":53", transport, nil) }()
	}
	log.Fatal(<-failed)
}

func answer(writer dns.ResponseWriter, query *dns.Msg) {
	reply := new(dns.Msg).SetReply(query)
	for _, question := range query.Question {
		header := dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}
		reply.Answer = append(reply.Answer, &dns.A{Hdr: header, A: net.IPv4(192, 0, 2, 53)})
	}
	_ = writer.WriteMsg(reply)
}
