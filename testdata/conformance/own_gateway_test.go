package conformance

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/utils/http"
	"sigs.k8s.io/gateway-api/conformance/utils/kubernetes"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

func init() { ownTests = append(ownTests, longName, foreignConditions, foreignStatus) }

const infra = suite.InfrastructureNamespace

func name(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: infra, Name: name}
}

// foreign is a condition that no controller of Gateway API writes.
func foreign(generation int64) metav1.Condition {
	return metav1.Condition{
		Type:               "example.net/Inspected",
		Status:             metav1.ConditionUnknown,
		Reason:             "NotYet",
		Message:            "Nobody has been here.",
		ObservedGeneration: generation,
		// Times of the API have whole seconds.
		LastTransitionTime: metav1.Now().Rfc3339Copy(),
	}
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, s *suite.ConformanceTestSuite, what string, holds func(context.Context) (bool, error)) {
	t.Helper()
	timeouts := s.TimeoutConfig
	err := wait.PollUntilContextTimeout(t.Context(), timeouts.DefaultPollInterval, timeouts.LatestObservedGenerationSet, true, holds)
	require.NoError(t, err, what)
}

// isCurrent says whether a condition was judged at this generation.
func isCurrent(conditions []metav1.Condition, kind string, generation int64) bool {
	found := meta.FindStatusCondition(conditions, kind)
	return found != nil && found.ObservedGeneration == generation
}

var longName = suite.ConformanceTest{
	ShortName:   "OwnGatewayNameMaximumLength",
	Description: "A Gateway may have the longest name there is, of 253 characters",
	Features:    []features.FeatureName{features.SupportGateway, features.SupportHTTPRoute},
	Test: func(t *testing.T, s *suite.ConformanceTestSuite) {
		// Without a dot, so that it cannot be a label either.
		longest := name(strings.Repeat("long-name-", 25) + "253")
		require.Len(t, longest.Name, 253)
		objects := []client.Object{
			&gateway.Gateway{
				ObjectMeta: metav1.ObjectMeta{Namespace: longest.Namespace, Name: longest.Name},
				Spec: gateway.GatewaySpec{
					GatewayClassName: gateway.ObjectName(s.GatewayClassName),
					Listeners:        []gateway.Listener{{Name: "web", Port: 80, Protocol: gateway.HTTPProtocolType}},
				},
			},
			&gateway.HTTPRoute{
				ObjectMeta: metav1.ObjectMeta{Namespace: infra, Name: "own-long-name"},
				Spec: gateway.HTTPRouteSpec{
					CommonRouteSpec: gateway.CommonRouteSpec{
						ParentRefs: []gateway.ParentReference{{Name: gateway.ObjectName(longest.Name)}},
					},
					Rules: []gateway.HTTPRouteRule{{
						BackendRefs: []gateway.HTTPBackendRef{{BackendRef: gateway.BackendRef{
							BackendObjectReference: gateway.BackendObjectReference{
								Name: suite.InfraBackendServiceNameV1,
								Port: new(gateway.PortNumber(8080)),
							},
						}}},
					}},
				},
			},
		}
		s.Applier.MustApplyObjectsWithCleanup(t, s.Client, s.TimeoutConfig, objects, true)
		address := kubernetes.GatewayAndHTTPRoutesMustBeAccepted(t, s.Client, s.TimeoutConfig, s.ControllerName,
			kubernetes.NewGatewayRef(longest), name("own-long-name"))
		expect(t, s, address, "any.example", "/", suite.InfraBackendServiceNameV1)
	},
}

// expect asks a Gateway until it is answered by a backend of this name, again and again.
func expect(t *testing.T, s *suite.ConformanceTestSuite, address, host, path, backend string, headers ...map[string]string) {
	t.Helper()
	request := http.Request{Host: host, Path: path}
	for _, one := range headers {
		request.Headers = one
	}
	expected := http.ExpectedResponse{Request: request, Backend: backend, Namespace: infra}
	http.MakeRequestAndExpectEventuallyConsistentResponse(t, s.RoundTripper, s.TimeoutConfig, address, expected)
}

// expectStatus asks a Gateway until it is answered with this status, again and again.
func expectStatus(t *testing.T, s *suite.ConformanceTestSuite, address, host, path string, status int) {
	t.Helper()
	expected := http.ExpectedResponse{
		Request:  http.Request{Host: host, Path: path},
		Response: http.Response{StatusCodes: []int{status}},
	}
	http.MakeRequestAndExpectEventuallyConsistentResponse(t, s.RoundTripper, s.TimeoutConfig, address, expected)
}

var foreignConditions = suite.ConformanceTest{
	ShortName:   "OwnGatewayPreserveForeignConditions",
	Description: "Conditions of others on a Gateway and on its listeners outlast a change of the Gateway",
	Features:    []features.FeatureName{features.SupportGateway},
	Manifests:   []string{"own/foreign-conditions.yaml"},
	Test: func(t *testing.T, s *suite.ConformanceTestSuite) {
		named := name("own-foreign-conditions")
		kubernetes.NamespacesMustBeReady(t, s.Client, s.TimeoutConfig, []string{infra})
		var wanted metav1.Condition
		update(t, s, named, &gateway.Gateway{}, true, func(object *gateway.Gateway) {
			wanted = foreign(object.Generation)
			meta.SetStatusCondition(&object.Status.Conditions, wanted)
			require.NotEmpty(t, object.Status.Listeners)
			for index := range object.Status.Listeners {
				meta.SetStatusCondition(&object.Status.Listeners[index].Conditions, wanted)
			}
		})
		update(t, s, named, &gateway.Gateway{}, false, func(object *gateway.Gateway) {
			object.Spec.Listeners = append(object.Spec.Listeners, gateway.Listener{
				Name: "more", Port: 80, Hostname: new(gateway.Hostname("more.example")), Protocol: gateway.HTTPProtocolType,
			})
		})

		object := &gateway.Gateway{}
		eventually(t, s, "the changed Gateway was not judged", func(ctx context.Context) (bool, error) {
			if err := s.Client.Get(ctx, named, object); err != nil {
				return false, err
			}
			done := len(object.Status.Listeners) == 2
			for _, kind := range []gateway.GatewayConditionType{gateway.GatewayConditionAccepted, gateway.GatewayConditionProgrammed} {
				done = done && isCurrent(object.Status.Conditions, string(kind), object.Generation)
			}
			for _, listener := range object.Status.Listeners {
				done = done && isCurrent(listener.Conditions, string(gateway.ListenerConditionAccepted), object.Generation)
			}
			return done, nil
		})
		expectForeign(t, wanted, object.Status.Conditions)
		for _, listener := range object.Status.Listeners {
			if listener.Name == "web" {
				expectForeign(t, wanted, listener.Conditions)
			} else {
				require.Nil(t, meta.FindStatusCondition(listener.Conditions, wanted.Type))
			}
		}
	},
}

func expectForeign(t *testing.T, wanted metav1.Condition, conditions []metav1.Condition) {
	t.Helper()
	found := meta.FindStatusCondition(conditions, wanted.Type)
	require.NotNil(t, found, "the condition of somebody else is gone")
	require.True(t, wanted.LastTransitionTime.Equal(&found.LastTransitionTime))
	found.LastTransitionTime = wanted.LastTransitionTime
	require.Equal(t, wanted, *found)
}

// update changes an object, or its status, however often somebody else is faster.
func update[T client.Object](t *testing.T, s *suite.ConformanceTestSuite, named types.NamespacedName, object T, status bool, change func(T)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.TimeoutConfig.LatestObservedGenerationSet)
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := s.Client.Get(ctx, named, object); err != nil {
			return err
		}
		change(object)
		if status {
			return s.Client.Status().Update(ctx, object)
		}
		return s.Client.Update(ctx, object)
	})
	require.NoError(t, err)
}

var foreignStatus = suite.ConformanceTest{
	ShortName:   "OwnHTTPRoutePreserveForeignStatus",
	Description: "What another controller says of an HTTPRoute outlasts a change of the route",
	Features:    []features.FeatureName{features.SupportGateway, features.SupportHTTPRoute},
	Manifests:   []string{"own/foreign-status.yaml"},
	Test: func(t *testing.T, s *suite.ConformanceTestSuite) {
		const controller = "example.net/somebody-else"
		named := name("own-foreign-status")
		kubernetes.GatewayAndHTTPRoutesMustBeAccepted(t, s.Client, s.TimeoutConfig, s.ControllerName,
			kubernetes.NewGatewayRef(name("same-namespace")), named)
		var wanted gateway.RouteParentStatus
		update(t, s, named, &gateway.HTTPRoute{}, true, func(object *gateway.HTTPRoute) {
			wanted = gateway.RouteParentStatus{
				ParentRef:      gateway.ParentReference{Name: "own-nobody"},
				ControllerName: controller,
				Conditions:     []metav1.Condition{foreign(object.Generation)},
			}
			object.Status.Parents = append(object.Status.Parents, wanted)
		})
		update(t, s, named, &gateway.HTTPRoute{}, false, func(object *gateway.HTTPRoute) {
			object.Spec.Hostnames = []gateway.Hostname{"changed.example"}
		})

		object := &gateway.HTTPRoute{}
		eventually(t, s, "the changed route was not judged", func(ctx context.Context) (bool, error) {
			if err := s.Client.Get(ctx, named, object); err != nil {
				return false, err
			}
			for _, parent := range object.Status.Parents {
				if string(parent.ControllerName) == s.ControllerName {
					return isCurrent(parent.Conditions, string(gateway.RouteConditionAccepted), object.Generation), nil
				}
			}
			return false, nil
		})
		// One for the Gateway that there is, and that of somebody else.
		require.Len(t, object.Status.Parents, 2)
		for _, parent := range object.Status.Parents {
			if string(parent.ControllerName) == s.ControllerName {
				require.Equal(t, gateway.ObjectName("same-namespace"), parent.ParentRef.Name)
				continue
			}
			require.Len(t, parent.Conditions, 1)
			expectForeign(t, wanted.Conditions[0], parent.Conditions)
			parent.Conditions, wanted.Conditions = nil, nil
			// The API server fills in what the reference leaves out.
			wanted.ParentRef.Group, wanted.ParentRef.Kind = parent.ParentRef.Group, parent.ParentRef.Kind
			require.Equal(t, wanted, parent)
		}
	},
}
