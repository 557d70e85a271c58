// dashboard reads a dashboard of Grafana by Grafana's own schema, and reports every field that is unknown, missing or of
// another type.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboard FILE")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	// The schemas of panels and queries.
	plugins.RegisterDefaultPlugins()
	var board dashboard.Dashboard
	err = board.UnmarshalJSONStrict(text)
	// A list without errors is no error.
	var faults cog.BuildErrors
	if errors.As(err, &faults) && len(faults) == 0 {
		err = nil
	}
	if err != nil {
		return err
	}
	return board.Validate()
}
