// Package conformance runs the official suite of Gateway API, and tests of our own with its helpers.
//
// It wants a cluster whose controller has accepted the GatewayClass, in a network where addresses of Gateways can be
// reached: tools/conformance makes all of that.
package conformance

import (
	"embed"
	"flag"
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/kubernetes"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
)

var (
	resultsFile = flag.String("results", "", "the file for a list of all tests and what became of them")
	dataPlane   = flag.String("data-plane", "", "the data plane, for that list")
)

//go:embed own
var manifests embed.FS

// ownTests are those of this folder.
var ownTests []suite.ConformanceTest

func isOwn(name string) bool {
	return slices.ContainsFunc(ownTests, func(test suite.ConformanceTest) bool { return test.ShortName == name })
}

// options are those of the command line, once the class is accepted: what it claims is read before the suite waits.
func options(t *testing.T) suite.ConformanceOptions {
	options := conformance.DefaultOptions(t)
	kubernetes.GWCMustHaveAcceptedConditionTrue(t, options.Client, options.TimeoutConfig, options.GatewayClassName)
	return options
}

func TestConformance(t *testing.T) {
	options := options(t)
	if isOwn(options.RunTest) {
		t.Skip("only a test of our own is asked for")
	}
	results := &results{options: options}
	options.Hook = results.record
	if *resultsFile != "" {
		// When all tests are done, the parallel ones too.
		t.Cleanup(func() { require.NoError(t, results.write(*resultsFile)) })
	}
	conformance.RunConformanceWithOptions(t, options)
}

// TestOwn comes after it, and finds what its setup has left behind.
func TestOwn(t *testing.T) {
	options := options(t)
	if options.RunTest != "" && !isOwn(options.RunTest) {
		t.Skip("only a test of the suite is asked for")
	}
	options.ManifestFS = []fs.FS{&conformance.Manifests, manifests}
	own, err := suite.NewConformanceTestSuite(options)
	require.NoError(t, err)
	own.Setup(t, slices.Concat(tests.ConformanceTests, ownTests))
	require.NoError(t, own.Run(t, ownTests))
}
