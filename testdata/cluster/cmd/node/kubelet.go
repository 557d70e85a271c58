//go:build linux

package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// kubeletPort is where the API server asks for logs. It does not ask who answers.
const kubeletPort = 10250

// serve serves what the API server asks for when somebody wants the log of a container.
func (l *logs) serve() error {
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	address := netip.AddrPortFrom(nodeAddress, kubeletPort)
	listener, err := tls.Listen("tcp", address.String(), &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return err
	}
	paths := http.NewServeMux()
	paths.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", l.handle)
	server := &http.Server{Handler: paths, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return nil
}

// handle knows the options `follow`, `sinceTime`, `sinceSeconds`, `tailLines` and `timestamps`.
func (l *logs) handle(answer http.ResponseWriter, request *http.Request) {
	options := request.URL.Query()
	var since time.Time
	if text := options.Get("sinceTime"); text != "" {
		time, err := time.Parse(time.RFC3339, text)
		if err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		since = time
	}
	if text := options.Get("sinceSeconds"); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	tail := -1
	if text := options.Get("tailLines"); text != "" {
		lines, err := strconv.Atoi(text)
		if err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		tail = lines
	}
	file, err := os.Open(l.path(request.PathValue("namespace"), request.PathValue("pod"), request.PathValue("container")))
	if errors.Is(err, fs.ErrNotExist) {
		// It has not written anything yet.
		return
	}
	if err != nil {
		http.Error(answer, err.Error(), http.StatusInternalServerError)
		return
	}
	defer file.Close()

	lines := bufio.NewReader(file)
	var found []string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		if text, wanted := shown(line, since, options.Get("timestamps") == "true"); wanted {
			found = append(found, text)
		}
	}
	if tail >= 0 {
		found = found[max(0, len(found)-tail):]
	}
	for _, line := range found {
		_, _ = io.WriteString(answer, line)
	}
	if options.Get("follow") != "true" {
		return
	}
	control := http.NewResponseController(answer)
	for rest := ""; request.Context().Err() == nil; {
		_ = control.Flush()
		line, err := lines.ReadString('\n')
		rest += line
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if text, wanted := shown(rest, since, options.Get("timestamps") == "true"); wanted {
			_, _ = io.WriteString(answer, text)
		}
		rest = ""
	}
}

// shown is a line as it is asked for, and whether it is asked for.
func shown(line string, since time.Time, timestamps bool) (string, bool) {
	stamp, text, _ := strings.Cut(line, " ")
	written, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil || written.Before(since) {
		return "", false
	}
	if timestamps {
		return line, true
	}
	return text, true
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{nodeAddress.AsSlice()},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("a certificate for the node: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}, nil
}
