package conformance

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/consts"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// results are what became of the tests of the profiles that were run.
type results struct {
	options suite.ConformanceOptions
	mutex   sync.Mutex
	lines   map[string]string
	counts  map[string]int
}

var profiles = []suite.ConformanceProfile{
	suite.GatewayHTTPConformanceProfile,
	suite.GatewayGRPCConformanceProfile,
	suite.GatewayTLSConformanceProfile,
	suite.GatewayTCPConformanceProfile,
	suite.GatewayUDPConformanceProfile,
}

// record is called after each test.
func (r *results) record(t *testing.T, test suite.ConformanceTest, run *suite.ConformanceTestSuite) {
	var of []string
	for _, profile := range profiles {
		if profile.CoreFeatures.HasAll(test.Features...) {
			of = append(of, string(profile.Name)+" core")
		} else if profile.CoreFeatures.Union(profile.ExtendedFeatures).HasAll(test.Features...) {
			of = append(of, string(profile.Name)+" extended")
		}
	}
	if len(of) == 0 {
		return
	}
	result := "passed"
	switch {
	case t.Failed():
		result = "**failed**"
	case t.Skipped():
		result = "not run"
		missing := slices.DeleteFunc(slices.Clone(test.Features), func(name features.FeatureName) bool {
			return run.SupportedFeatures.Has(name)
		})
		if len(missing) > 0 {
			result = fmt.Sprintf("not claimed: %s", join(missing))
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.lines == nil {
		r.lines, r.counts = map[string]string{}, map[string]int{}
	}
	provisional := ""
	if test.Provisional {
		provisional = " (provisional)"
	}
	r.lines[test.ShortName] = fmt.Sprintf("| %s%s | %s | %s |\n", test.ShortName, provisional, strings.Join(of, ", "), result)
	kind, _, _ := strings.Cut(result, ":")
	for _, profile := range of {
		r.counts[profile+": "+kind]++
	}
}

func (r *results) write(path string) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "# Results of the conformance suite\n\nMade by `just conformance`.\n\n| what | version |\n|---|---|\n")
	for _, row := range [][2]string{
		{"suite and definitions", consts.BundleVersion},
		{"controller", r.options.Implementation.Version},
		{"data plane", *dataPlane},
	} {
		fmt.Fprintf(&text, "| %s | %s |\n", row[0], row[1])
	}
	text.WriteString("\n| profile | tests |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(r.counts)) {
		profile, kind, _ := strings.Cut(name, ": ")
		fmt.Fprintf(&text, "| %s, %s | %d |\n", profile, strings.Trim(kind, "*"), r.counts[name])
	}
	text.WriteString("\n| test | profiles | result |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(r.lines)) {
		text.WriteString(r.lines[name])
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

func join(names []features.FeatureName) string {
	var text []string
	for _, name := range names {
		text = append(text, string(name))
	}
	slices.Sort(text)
	return strings.Join(text, ", ")
}
