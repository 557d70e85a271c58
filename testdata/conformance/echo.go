//go:build pins

// Package conformance pins what is built beside the tests: the backend of the suite, which is a program.
package conformance

import _ "sigs.k8s.io/gateway-api/conformance/echo-basic"
