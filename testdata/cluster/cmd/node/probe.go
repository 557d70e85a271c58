//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// prober does not keep connections, and does not ask who answers: it asks whether.
var prober = &http.Client{
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// probe looks after one run of a container: whether it has started, whether it is ready, and whether it is alive.
func (c *container) probe(ctx context.Context) {
	if probe := c.spec.StartupProbe; probe != nil {
		if !c.until(ctx, probe) {
			return
		}
		c.set(func() {
			c.started = true
			c.ready = c.spec.ReadinessProbe == nil
		})
	}
	if probe := c.spec.LivenessProbe; probe != nil {
		go c.follow(ctx, probe, succeeded, func(alive bool) bool {
			if !alive {
				c.pod.say("%s is not alive, and is ended", c.spec.Name)
				c.kill()
			}
			return alive
		})
	}
	if probe := c.spec.ReadinessProbe; probe != nil {
		c.follow(ctx, probe, failed, func(ready bool) bool {
			c.set(func() { c.ready = ready })
			return true
		})
	}
}

// until waits for the startup probe's success; without it in time the container is ended.
func (c *container) until(ctx context.Context, probe *core.Probe) bool {
	started := false
	c.follow(ctx, probe, unknown, func(holds bool) bool {
		started = holds
		if !holds {
			c.pod.say("%s does not start, and is ended", c.spec.Name)
			c.kill()
		}
		return false
	})
	return started
}

// outcome of the last probes: of as many in a row as the threshold says.
type outcome int

const (
	unknown outcome = iota
	succeeded
	failed
)

// follow probes until the context ends, and tells when the outcome is another one than it was, until it is told that
// this is enough.
func (c *container) follow(ctx context.Context, probe *core.Probe, was outcome, tell func(bool) bool) {
	row, last := int32(0), unknown
	pause := time.NewTimer(time.Duration(probe.InitialDelaySeconds) * time.Second)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		pause.Reset(time.Duration(max(probe.PeriodSeconds, 1)) * time.Second)
		limited, stop := context.WithTimeout(ctx, time.Duration(max(probe.TimeoutSeconds, 1))*time.Second)
		err := c.ask(limited, &probe.ProbeHandler)
		stop()
		if ctx.Err() != nil {
			return
		}
		now, threshold := succeeded, max(probe.SuccessThreshold, 1)
		if err != nil {
			now, threshold = failed, max(probe.FailureThreshold, 1)
		}
		if now != last {
			row, last = 0, now
		}
		row++
		if row >= threshold && now != was {
			was = now
			if !tell(now == succeeded) {
				return
			}
		}
	}
}

func (c *container) ask(ctx context.Context, handler *core.ProbeHandler) error {
	switch {
	case handler.HTTPGet != nil:
		return c.httpGet(ctx, handler.HTTPGet)
	case handler.TCPSocket != nil:
		address, err := c.address(handler.TCPSocket.Host, handler.TCPSocket.Port)
		if err != nil {
			return err
		}
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	}
	return errors.New("this kind of probe is not supported by the node of the test cluster")
}

func (c *container) httpGet(ctx context.Context, action *core.HTTPGetAction) error {
	address, err := c.address(action.Host, action.Port)
	if err != nil {
		return err
	}
	scheme := "http"
	if action.Scheme == core.URISchemeHTTPS {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+"/", nil)
	if err != nil {
		return err
	}
	if request.URL, err = request.URL.Parse(action.Path); err != nil {
		return err
	}
	request.Header.Set("User-Agent", "kube-probe")
	for _, header := range action.HTTPHeaders {
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			request.Host = header.Value
		}
		request.Header.Add(header.Name, header.Value)
	}
	answer, err := prober.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 1<<16)
	if answer.StatusCode < 200 || answer.StatusCode >= 400 {
		return fmt.Errorf("%s answers %s", request.URL, answer.Status)
	}
	return nil
}

// address of a port by number or by name.
func (c *container) address(host string, port intstr.IntOrString) (string, error) {
	if host == "" {
		host = c.pod.network.address.String()
	}
	number := port.IntVal
	if port.Type == intstr.String {
		for _, named := range c.spec.Ports {
			if named.Name == port.StrVal {
				number = named.ContainerPort
			}
		}
	}
	if number == 0 {
		return "", fmt.Errorf("%s has no port %s", c.spec.Name, port.String())
	}
	return net.JoinHostPort(host, strconv.Itoa(int(number))), nil
}
