//go:build pins

// Package cluster pins the module whose custom resource definitions the test cluster installs.
//
// Nothing of it is compiled: tools/build-cluster reads the definitions from the module's folder.
package cluster

import _ "sigs.k8s.io/gateway-api/apis/v1"
