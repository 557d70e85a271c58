package conformance

import (
	"testing"

	"google.golang.org/grpc/codes"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	pb "sigs.k8s.io/gateway-api/conformance/echo-basic/grpcechoserver"
	"sigs.k8s.io/gateway-api/conformance/utils/grpc"
	"sigs.k8s.io/gateway-api/conformance/utils/kubernetes"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

func init() {
	ownTests = append(ownTests, ruleOrder, sameIntersection, sameIntersectionGRPC, multipleGatewaysGRPC)
}

const (
	first  = suite.InfraBackendServiceNameV1
	second = suite.InfraBackendServiceNameV2
	third  = suite.InfraBackendServiceNameV3
)

var ruleOrder = suite.ConformanceTest{
	ShortName:   "OwnHTTPRouteRuleOrder",
	Description: "Of rules that match the same the first one counts, also where it has no backend",
	Features:    []features.FeatureName{features.SupportGateway, features.SupportHTTPRoute},
	Manifests:   []string{"own/rule-order.yaml"},
	Test: func(t *testing.T, s *suite.ConformanceTestSuite) {
		route := name("own-rule-order")
		gatewayName := name("same-namespace")
		address := kubernetes.GatewayAndHTTPRoutesMustBeAccepted(t, s.Client, s.TimeoutConfig, s.ControllerName,
			kubernetes.NewGatewayRef(gatewayName), route)
		const host = "own-rule-order.example"
		t.Run("headers in another order are the same headers", func(t *testing.T) {
			both := map[string]string{"X-Color": "red", "X-Size": "small"}
			expect(t, s, address, host, "/headers", first, both)
		})
		t.Run("a rule without a backend gives its requests to no other", func(t *testing.T) {
			expectStatus(t, s, address, host, "/gone", 500)
		})
		t.Run("the rest is the third rule's", func(t *testing.T) {
			expect(t, s, address, host, "/headers", third, map[string]string{"X-Color": "red"})
		})
	},
}

// sameIntersection: under these listeners all routes serve the same names, and differ only in how they say so. Routes
// that say less are named so that age and name speak for them.
var sameIntersection = suite.ConformanceTest{
	ShortName:   "OwnHTTPRouteSameHostnameIntersection",
	Description: "Of routes that serve the same name on a listener, the one with the more specific hostname comes first",
	Features:    []features.FeatureName{features.SupportGateway, features.SupportHTTPRoute},
	Manifests:   []string{"own/same-intersection.yaml"},
	Test: func(t *testing.T, s *suite.ConformanceTestSuite) {
		kubernetes.NamespacesMustBeReady(t, s.Client, s.TimeoutConfig, []string{infra})
		t.Run("under a wildcard", func(t *testing.T) {
			address := kubernetes.GatewayAndHTTPRoutesMustBeAccepted(t, s.Client, s.TimeoutConfig, s.ControllerName,
				kubernetes.NewGatewayRef(name("own-intersection-wildcard")), name("own-a-wide"), name("own-b-narrow"))
			for _, one := range []struct{ why, path, backend string }{
				{"the narrow one comes first", "/both", second},
				{"also with a shorter path", "/both/longer/path", second},
				{"the wide one gets what the other does not match", "/wide", first},
			} {
				t.Run(one.why, func(t *testing.T) {
					for _, host := range []string{"one.own-intersection.com", "two.one.own-intersection.com"} {
						expect(t, s, address, host, one.path, one.backend)
					}
				})
			}
			t.Run("neither serves what the listener does not", func(t *testing.T) {
				expectStatus(t, s, address, "own-elsewhere.com", "/both", 404)
			})
		})
		t.Run("under a whole name", func(t *testing.T) {
			address := kubernetes.GatewayAndHTTPRoutesMustBeAccepted(t, s.Client, s.TimeoutConfig, s.ControllerName,
				kubernetes.NewGatewayRef(name("own-intersection-whole")),
				name("own-c-any"), name("own-d-wide"), name("own-e-narrow"), name("own-f-whole"))
			const host = "whole.own-intersection.com"
			for _, one := range []struct{ why, path, backend string }{
				{"the whole name comes first", "/four/three/two/one", third},
				{"then the narrow one", "/three/two/one", second},
				{"then the wide one", "/two/one", first},
				{"then the one without a name", "/one", second},
			} {
				t.Run(one.why, func(t *testing.T) { expect(t, s, address, host, one.path, one.backend) })
			}
		})
	},
}

var sameIntersectionGRPC = suite.ConformanceTest{
	ShortName:   "OwnGRPCRouteSameHostnameIntersection",
	Description: "The same for GRPCRoutes",
	Features:    []features.FeatureName{features.SupportGateway, features.SupportGRPCRoute},
	Manifests:   []string{"own/same-intersection-grpc.yaml"},
	Test: func(t *testing.T, s *suite.ConformanceTestSuite) {
		kubernetes.NamespacesMustBeReady(t, s.Client, s.TimeoutConfig, []string{infra})
		address := kubernetes.GatewayAndRoutesMustBeAccepted(t, s.Client, s.TimeoutConfig, s.ControllerName,
			kubernetes.NewGatewayRef(name("own-intersection-grpc")), &gateway.GRPCRoute{}, true,
			name("own-g-wide"), name("own-h-narrow"))
		const host = "one.own-intersection.com"
		call(t, s, "the narrow one comes first", address, host, map[string]string{"x-for": "both"}, "grpc-"+second)
		call(t, s, "the wide one gets the rest", address, host, nil, "grpc-"+first)
		call(t, s, "neither serves what the listener does not", address, "own-elsewhere.com", nil, "")
	},
}

var multipleGatewaysGRPC = suite.ConformanceTest{
	ShortName:   "OwnGRPCRouteMultipleGateways",
	Description: "A GRPCRoute of two Gateways is served by both, one of a single Gateway by that alone",
	Features:    []features.FeatureName{features.SupportGateway, features.SupportGRPCRoute},
	Manifests:   []string{"own/multiple-gateways-grpc.yaml"},
	Test: func(t *testing.T, s *suite.ConformanceTestSuite) {
		for _, one := range []struct{ gateway, route, backend string }{
			{"same-namespace", "own-of-one", second},
			{"all-namespaces", "own-of-the-other", third},
		} {
			t.Run(one.gateway, func(t *testing.T) {
				address := kubernetes.GatewayAndRoutesMustBeAccepted(t, s.Client, s.TimeoutConfig, s.ControllerName,
					kubernetes.NewGatewayRef(name(one.gateway)), &gateway.GRPCRoute{}, true, name("own-of-both"), name(one.route))
				const host = "own-gateways.example"
				call(t, s, "the shared route", address, host, map[string]string{"x-shared": "yes"}, "grpc-"+first)
				call(t, s, "its own", address, host, nil, "grpc-"+one.backend)
				// That of the other Gateway would match it.
				call(t, s, "not the other's", address, "own-only-"+one.route+".example", nil, "grpc-"+one.backend)
				other := map[string]string{"own-of-one": "own-of-the-other", "own-of-the-other": "own-of-one"}[one.route]
				call(t, s, "nothing for the other's", address, "own-only-"+other+".example", nil, "")
			})
		}
	},
}

// call calls until a backend of this name answers, again and again, or nobody where there is no backend.
func call(t *testing.T, s *suite.ConformanceTestSuite, why, address, authority string, metadata map[string]string, backend string) {
	t.Helper()
	expected := grpc.ExpectedResponse{
		EchoRequest:     &pb.EchoRequest{},
		RequestMetadata: &grpc.RequestMetadata{Authority: authority, Metadata: metadata},
		Backend:         backend,
		Namespace:       infra,
	}
	if backend == "" {
		expected.Namespace = ""
		expected.Response.Code = codes.Unimplemented
	}
	t.Run(why, func(t *testing.T) {
		grpc.MakeRequestAndExpectEventuallyConsistentResponse(t, s.GRPCClient, s.TimeoutConfig, address, expected)
	})
}
