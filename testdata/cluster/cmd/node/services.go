//go:build linux

package main

import (
	"context"
	"encoding/json"
	"log"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	errs "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	sliceListers "k8s.io/client-go/listers/discovery/v1"
)

// kubernetesAddress is what the API server gives its own Service.
var kubernetesAddress = netip.MustParseAddr("10.96.0.1")

// settle is for how long changes are collected.
const settle = 10 * time.Millisecond

// services listens on the addresses of Services, and gives those of type LoadBalancer addresses of their own.
type services struct {
	client    kubernetes.Interface
	services  listers.ServiceLister
	slices    sliceListers.EndpointSliceLister
	apiServer string
	wake      chan struct{}

	// Only run touches these.
	balancers *pool
	given     map[types.UID]netip.Addr

	mutex     sync.Mutex
	listeners map[place]carrier
}

// place is where clients of a Service find it.
type place struct {
	at       netip.AddrPort
	protocol core.Protocol
}

// carrier serves a place.
type carrier interface {
	set(targets []string)
	close()
}

func newCarrier(at place, targets []string) (carrier, error) {
	if at.protocol == core.ProtocolUDP {
		return newDatagrams(at.at, targets)
	}
	return newForwarder(at.at, targets)
}

func newServices(client kubernetes.Interface, factory informers.SharedInformerFactory, apiServer string) *services {
	return &services{
		client:    client,
		services:  factory.Core().V1().Services().Lister(),
		slices:    factory.Discovery().V1().EndpointSlices().Lister(),
		apiServer: apiServer,
		wake:      make(chan struct{}, 1),
		balancers: newPool(loadBalancerRange),
		given:     map[types.UID]netip.Addr{},
		listeners: map[place]carrier{},
	}
}

func (s *services) changed() { wake(s.wake) }

func (s *services) run(ctx context.Context) {
	for {
		s.synchronize(ctx)
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			time.Sleep(settle)
		}
	}
}

// synchronize listens where a Service has an address, and nowhere else.
func (s *services) synchronize(ctx context.Context) {
	all, err := s.services.List(labels.Everything())
	if err != nil {
		log.Println("services:", err)
		return
	}
	s.giveAddresses(ctx, all)
	wanted := map[place][]string{}
	for _, service := range all {
		var addresses []netip.Addr
		if address, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil {
			addresses = append(addresses, address)
		}
		if address, there := s.given[service.UID]; there {
			addresses = append(addresses, address)
		}
		for _, port := range service.Spec.Ports {
			if port.Protocol == core.ProtocolSCTP {
				continue
			}
			targets := s.targets(service, port.Name)
			for _, address := range addresses {
				wanted[place{netip.AddrPortFrom(address, uint16(port.Port)), port.Protocol}] = targets
			}
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for at, listener := range s.listeners {
		if _, stays := wanted[at]; !stays {
			listener.close()
			delete(s.listeners, at)
		}
	}
	for at, targets := range wanted {
		if listener := s.listeners[at]; listener != nil {
			listener.set(targets)
			continue
		}
		listener, err := newCarrier(at, targets)
		if err != nil {
			log.Printf("the address %s of a Service: %v", at.at, err)
			continue
		}
		s.listeners[at] = listener
	}
}

// targets are the endpoints of a port that are ready, or, where there are none, those that still serve while they end.
func (s *services) targets(service *core.Service, port string) []string {
	if service.Namespace == meta.NamespaceDefault && service.Name == "kubernetes" {
		return []string{s.apiServer}
	}
	var ready, serving []string
	s.endpoints(service, func(slice *discovery.EndpointSlice, endpoint *discovery.Endpoint) {
		for _, one := range slice.Ports {
			if one.Port == nil || one.Name != nil && *one.Name != port || one.Name == nil && port != "" {
				continue
			}
			for _, address := range endpoint.Addresses {
				target := net.JoinHostPort(address, strconv.Itoa(int(*one.Port)))
				if isReady(endpoint) {
					ready = append(ready, target)
				} else if endpoint.Conditions.Serving != nil && *endpoint.Conditions.Serving {
					serving = append(serving, target)
				}
			}
		}
	})
	if len(ready) > 0 {
		return ready
	}
	return serving
}

func isReady(endpoint *discovery.Endpoint) bool {
	return endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
}

func (s *services) endpoints(service *core.Service, each func(*discovery.EndpointSlice, *discovery.Endpoint)) {
	selector := labels.SelectorFromSet(labels.Set{discovery.LabelServiceName: service.Name})
	slices, err := s.slices.EndpointSlices(service.Namespace).List(selector)
	if err != nil {
		log.Println("endpoints:", err)
		return
	}
	for _, slice := range slices {
		if slice.AddressType != discovery.AddressTypeIPv4 {
			continue
		}
		for index := range slice.Endpoints {
			each(slice, &slice.Endpoints[index])
		}
	}
}

// giveAddresses gives each Service of type LoadBalancer the address that it asks for, or any, and takes back those of
// others, and of Services that ask for another by now. One that cannot be given leaves the Service without, as a provider
// would.
func (s *services) giveAddresses(ctx context.Context, all []*core.Service) {
	balanced, asked := map[types.UID]bool{}, map[types.UID]string{}
	for _, service := range all {
		balanced[service.UID] = service.Spec.Type == core.ServiceTypeLoadBalancer && service.DeletionTimestamp == nil
		asked[service.UID] = service.Spec.LoadBalancerIP
	}
	for uid, address := range s.given {
		if !balanced[uid] || !suits(address.String(), asked[uid]) {
			delete(s.given, uid)
			s.balancers.release(address)
		}
	}
	// Addresses that a node before this one gave come first.
	for _, service := range all {
		ingress := service.Status.LoadBalancer.Ingress
		if balanced[service.UID] && len(ingress) == 1 && suits(ingress[0].IP, service.Spec.LoadBalancerIP) {
			if _, there := s.given[service.UID]; !there {
				if address, err := netip.ParseAddr(ingress[0].IP); err == nil && s.balancers.take(address) {
					s.given[service.UID] = address
				}
			}
		}
	}
	for _, service := range all {
		if !balanced[service.UID] {
			continue
		}
		address, there := s.given[service.UID]
		if !there {
			if chosen, err := s.choose(service); err == nil {
				s.given[service.UID], address, there = chosen, chosen, true
			}
		}
		ingress := []core.LoadBalancerIngress{}
		if there {
			ingress = append(ingress, core.LoadBalancerIngress{IP: address.String()})
		}
		sameIP := func(a, b core.LoadBalancerIngress) bool { return a.IP == b.IP }
		if slices.EqualFunc(service.Status.LoadBalancer.Ingress, ingress, sameIP) {
			continue
		}
		if err := s.publish(ctx, service, ingress); err != nil && !errs.IsNotFound(err) {
			log.Printf("the address of the Service %s/%s: %v", service.Namespace, service.Name, err)
			time.AfterFunc(missingPause, s.changed)
		}
	}
}

// suits tells whether an address is one that is asked for, if any is.
func suits(address, asked string) bool { return asked == "" || address == asked }

func (s *services) choose(service *core.Service) (netip.Addr, error) {
	if service.Spec.LoadBalancerIP == "" {
		return s.balancers.next()
	}
	wanted, err := netip.ParseAddr(service.Spec.LoadBalancerIP)
	if err == nil && !s.balancers.take(wanted) {
		err = errNotFree
	}
	return wanted, err
}

func (s *services) publish(ctx context.Context, service *core.Service, ingress []core.LoadBalancerIngress) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": ingress}}})
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().Services(service.Namespace).
		Patch(ctx, service.Name, types.MergePatchType, patch, meta.PatchOptions{}, "status")
	return err
}
