// Command kubernetes is the API server or the controller manager, whichever its first argument names.
//
// The two share most of what they are made of, so that one binary is little larger than either.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
}

func main() {
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: kubernetes kube-apiserver|kube-controller-manager [FLAG...]")
		os.Exit(2)
	}
	program := os.Args[1]
	// From here on the process looks as if it had been called by the program's own name.
	os.Args = append([]string{program}, os.Args[2:]...)
	os.Exit(cli.Run(programs[program]()))
}
